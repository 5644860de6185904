//! Programs of ranks in these tests.

use crate::endings::handle;
use crate::programs::{fence, for_ever, join, say, start};
use argonet_base::JobRank;
use argonet_boot::{Bootstrap, Key, exit};
use std::io::Write;
use std::os::unix::fs::FileExt;

/// The program of a rank in these tests.
pub(crate) fn rank(args: &[&str]) -> Option<i32> {
    match args {
        ["neighbors"] => {
            let job = join();
            let (host, near) = (job.host_ranks(), job.neighborhood());
            say(&format!(
                "rank {}: host {host:?}, neighbors {near:?}",
                job.rank()
            ));
            // Ranks that share files see the marks that one of them has written there; others do
            // not.
            let rings = std::fs::File::from(job.files().rings.try_clone().expect("a descriptor"));
            let mut marks = vec![0; job.size() as usize];
            if job.rank().0 == near.start {
                rings.set_len(marks.len() as u64).expect("room");
            }
            fence(&job);
            rings.write_at(&[1], job.rank().0.into()).expect("written");
            fence(&job);
            rings.read_at(&mut marks, 0).expect("read");
            for (rank, mark) in (0..).zip(marks) {
                assert_eq!(mark == 1, near.contains(&rank), "rank {rank} of {near:?}");
            }
            job.finalized();
        }
        ["key"] => {
            let job = join();
            let key = job.job_key().bytes();
            assert!(key.iter().any(|&byte| byte != 0));
            let hex: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
            // Not even what this process was started with.
            for file in ["environ", "cmdline"] {
                let bytes = std::fs::read(format!("/proc/self/{file}")).expect(file);
                assert!(!bytes.windows(key.len()).any(|part| part == key), "{file}");
                assert!(!String::from_utf8_lossy(&bytes).contains(&hex), "{file}");
            }
            let digest = key.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
            });
            say(&format!("{} {digest:016x}", job.rank()));
            fence(&job);
            job.finalized();
        }
        // Numbered lines, in large writes.
        ["flood", bytes] => {
            handle(libc::SIGPIPE, libc::SIG_DFL);
            let job = start();
            let (bytes, mut written, mut number): (usize, _, _) = (bytes.parse().ok()?, 0, 0);
            let mut out = std::io::stdout().lock();
            while written < bytes {
                let mut lines = String::new();
                while lines.len() < 50_000 {
                    lines.push_str(&format!("{} is at line {number}\n", job.rank()));
                    number += 1;
                }
                written += lines.len();
                out.write_all(lines.as_bytes()).expect("written");
            }
            job.finalized();
        }
        // A value is there after the fence that follows it, on every host.
        ["fences", count] => {
            let job = join();
            let keys = [Key::User, Key::Tool, Key::Host];
            for round in 0..count.parse().ok()? {
                if let Some(&key) = keys.get(round) {
                    let value = format!("{round} of {}", job.rank()).repeat(5);
                    job.publish(key, value.as_bytes()).expect("published");
                }
                fence(&job);
                for (round, key) in keys.into_iter().enumerate().take(round + 1) {
                    for rank in (0..job.size()).map(JobRank) {
                        let value = job.lookup(rank, key).expect("looked up");
                        assert_eq!(value, format!("{round} of {rank}").repeat(5).into_bytes());
                    }
                }
            }
            job.started();
            say(&format!("rank {}", job.rank()));
            fence(&job);
            job.finalized();
        }
        ["exit-of-all", code] => {
            let _job = start();
            exit(code.parse().ok()?);
        }
        // One rank finalizes and lives on; the others wait for it.
        ["desert", who] => {
            let job = start();
            if job.rank().0.to_string() == *who {
                job.finalized();
                for_ever()
            }
            fence(&job);
        }
        // Ignores the first signal.
        ["ignore"] => {
            extern "C" fn not_yet(_signal: i32) {
                let _ = rustix::io::write(rustix::stdio::stdout(), b"not yet\n");
            }
            handle(libc::SIGINT, not_yet as *const () as usize);
            let job = start();
            fence(&job);
            for_ever()
        }
        _ => return None,
    }
    Some(0)
}
