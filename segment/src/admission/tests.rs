use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use super::{HostMemory, Version, admit, cgroup_mount};
use crate::error::SegmentError;
use argonet_base::size::HumanSize;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// A host made of files, removed when the test ends.
struct FakeHost {
    root: PathBuf,
}

impl FakeHost {
    /// 100 GiB, 80 of which are available.
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!(
            "argonet-host-{}-{}",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        );
        let host = Self {
            root: std::env::temp_dir().join(name),
        };
        host.with(
            "proc/meminfo",
            "MemTotal:       104857600 kB\nMemFree:  1 kB\nMemAvailable:   83886080 kB\nSwapTotal: 0 kB\n",
        )
    }

    fn with(self, path: &str, content: &str) -> Self {
        let file = self.root.join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, content).unwrap();
        self
    }

    /// A level of version 2, with a limit and the use of it.
    fn v2(self, group: &str, max: &str, current: u64) -> Self {
        let base = format!("sys/fs/cgroup/{group}");
        self.with(&format!("{base}/memory.max"), max)
            .with(&format!("{base}/memory.current"), &format!("{current}\n"))
    }

    fn v1(self, group: &str, limit: u64, usage: u64) -> Self {
        let base = format!("sys/fs/cgroup/memory/{group}");
        self.with(
            &format!("{base}/memory.limit_in_bytes"),
            &format!("{limit}\n"),
        )
        .with(
            &format!("{base}/memory.usage_in_bytes"),
            &format!("{usage}\n"),
        )
    }

    fn in_group(self, line: &str) -> Self {
        self.with("proc/self/cgroup", line)
    }

    fn probe(&self) -> HostMemory {
        HostMemory::probe_at(&self.root).unwrap()
    }

    /// Available before the reserve of 5 %, and which file sets it.
    #[track_caller]
    fn expect(&self, available: u64, limited_by: &str) {
        let host = self.probe();
        assert_eq!(
            host.available_bytes(),
            available - available / 100 * 5,
            "{host:?}"
        );
        assert!(host.limited_by().contains(limited_by), "{host:?}");
        assert!(
            !host.limited_by().contains(self.root.to_str().unwrap()),
            "{host:?}"
        );
    }
}

impl Drop for FakeHost {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.root);
    }
}

#[test]
fn without_groups_the_host_is_the_limit() {
    let host = FakeHost::new();
    host.expect(80 * GIB, "MemAvailable");
    assert_eq!(host.probe().total_bytes(), 100 * GIB);
}

#[test]
fn a_v2_group_limits() {
    let host = FakeHost::new()
        .in_group("0::/job\n")
        .v2("job", "10737418240\n", 2 * GIB);
    host.expect(8 * GIB, "/sys/fs/cgroup/job/memory.max (10 GiB)");
    assert_eq!(host.probe().total_bytes(), 10 * GIB);
}

#[test]
fn what_is_as_tight_as_the_host_is_not_named() {
    let host = FakeHost::new()
        .in_group("0::/job\n")
        .v2("job", "85899345920\n", 0);
    host.expect(80 * GIB, "MemAvailable");
}

#[test]
fn the_hierarchy_of_memory_is_found_among_mounts() {
    let line = |kind: &str, options: &str| {
        format!("36 35 98:0 /part /where rw,noatime shared:1 - {kind} none {options}")
    };
    let found = Some(("/part", "/where"));
    for (kind, options, first, second) in [
        ("cgroup", "rw,memory", found, None),
        ("cgroup", "rw,cpu", None, None),
        ("cgroup", "rw,memory_recursiveprot", None, None),
        ("cgroup2", "rw", None, found),
        ("tmpfs", "rw,memory", None, None),
    ] {
        let line = line(kind, options);
        assert_eq!(cgroup_mount(&line, Version::V1), first, "{line}");
        assert_eq!(cgroup_mount(&line, Version::V2), second, "{line}");
    }
    assert_eq!(cgroup_mount("36 35 98:0 /part /where", Version::V2), None);
}

#[test]
fn the_tightest_of_nested_v2_groups_limits() {
    let host = FakeHost::new()
        .in_group("0::/slurm/job_7/task_0\n")
        .v2("slurm/job_7/task_0", "max\n", GIB)
        .v2("slurm/job_7", "6442450944\n", GIB)
        .v2("slurm", "53687091200\n", GIB);
    host.expect(5 * GIB, "slurm/job_7/memory.max");
    // A parent that others have filled leaves less than the child's own limit does.
    let full = FakeHost::new()
        .in_group("0::/slurm/job_7\n")
        .v2("slurm/job_7", "6442450944\n", GIB)
        .v2("slurm", "53687091200\n", 48 * GIB);
    full.expect(2 * GIB, "slurm/memory.max");
}

#[test]
fn memory_high_limits_as_well() {
    let host = FakeHost::new()
        .in_group("0::/job\n")
        .v2("job", "10737418240\n", GIB)
        .with("sys/fs/cgroup/job/memory.high", "4294967296\n");
    host.expect(3 * GIB, "memory.high");
}

#[test]
fn cache_that_can_be_dropped_is_available() {
    let v2 = FakeHost::new()
        .in_group("0::/job\n")
        .v2("job", "10737418240\n", 9 * GIB)
        .with(
            "sys/fs/cgroup/job/memory.stat",
            "anon 5\nfile 7\ninactive_file 6442450944\nactive_file 1\n",
        );
    v2.expect(7 * GIB, "memory.max");
    let v1 = FakeHost::new()
        .in_group("4:memory:/job\n")
        .v1("job", 10 * GIB, 9 * GIB)
        .with(
            "sys/fs/cgroup/memory/job/memory.stat",
            "inactive_file 1\ntotal_inactive_file 6442450944\n",
        );
    v1.expect(7 * GIB, "memory.limit_in_bytes");
    // More cache than usage (the two are read at different moments) is no gain.
    let odd = FakeHost::new()
        .in_group("0::/job\n")
        .v2("job", "10737418240\n", GIB)
        .with(
            "sys/fs/cgroup/job/memory.stat",
            "inactive_file 64424509440\n",
        );
    odd.expect(10 * GIB, "memory.max");
}

#[test]
fn v1_groups_limit_and_nest() {
    let host = FakeHost::new()
        .in_group("9:name=systemd:/\n5:cpu,cpuacct:/x\n4:memory:/slurm/step_0\n0::/\n")
        .v1("slurm/step_0", 9_223_372_036_854_771_712, GIB)
        .v1("slurm", 20 * GIB, 5 * GIB)
        .v1("", 9_223_372_036_854_771_712, 30 * GIB);
    host.expect(
        15 * GIB,
        "/sys/fs/cgroup/memory/slurm/memory.limit_in_bytes",
    );
}

#[test]
fn unlimited_groups_do_not_limit() {
    FakeHost::new()
        .in_group("0::/job\n")
        .v2("job", "max\n", 70 * GIB)
        .with("sys/fs/cgroup/job/memory.high", "max\n")
        .expect(80 * GIB, "MemAvailable");
    FakeHost::new()
        .in_group("4:memory:/job\n")
        .v1("job", 9_223_372_036_854_771_712, 70 * GIB)
        .expect(80 * GIB, "MemAvailable");
}

#[test]
fn a_group_beyond_its_limit_has_nothing() {
    let host = FakeHost::new()
        .in_group("0::/job\n")
        .v2("job", "1073741824\n", 2 * GIB);
    host.expect(0, "memory.max");
}

#[test]
fn a_container_sees_its_group_at_the_mount() {
    // The mount shows /docker/abc; the path is given from the true root.
    let inside = FakeHost::new()
        .in_group("4:memory:/docker/abc/sub\n")
        .with(
            "proc/self/mountinfo",
            "30 20 0:5 / / rw - ext4 /dev/sda rw\n\
             35 30 0:29 /docker/abc /cg/mem ro,nosuid shared:1 master:2 - cgroup cgroup rw,memory\n\
             36 30 0:30 /docker/abc /cg/cpu ro - cgroup cgroup rw,cpu,cpuacct\n",
        )
        .with("cg/mem/sub/memory.limit_in_bytes", "3221225472")
        .with("cg/mem/sub/memory.usage_in_bytes", "0")
        .with("cg/mem/memory.limit_in_bytes", "2147483648")
        .with("cg/mem/memory.usage_in_bytes", "0");
    inside.expect(2 * GIB, "/cg/mem/memory.limit_in_bytes");

    // The path names a group that is not shown, or climbs out: the mount itself is looked at.
    for line in ["0::/somewhere/else\n", "0::/../../other\n"] {
        let host = FakeHost::new()
            .in_group(line)
            .with(
                "proc/self/mountinfo",
                "36 30 0:30 / /sys/fs/cgroup ro - cgroup2 cgroup2 rw\n",
            )
            .v2("", "2147483648\n", 0)
            .with("other/memory.max", "1")
            .with("sys/other/memory.max", "1");
        host.expect(2 * GIB, "/sys/fs/cgroup/memory.max");
    }
}

#[test]
fn both_generations_at_once() {
    let host = FakeHost::new()
        .in_group("4:memory:/a\n0::/b\n")
        .with(
            "proc/self/mountinfo",
            "35 30 0:29 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
             36 30 0:30 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
        )
        .v1("a", 30 * GIB, 0)
        .with("sys/fs/cgroup/unified/b/memory.max", "1073741824");
    host.expect(GIB, "unified/b/memory.max");
}

#[test]
fn broken_files_set_no_limit() {
    FakeHost::new()
        .in_group("garbage\n::\n4:memory\n\u{0}\n0::/job\n")
        .with("proc/self/mountinfo", "short\n1 2 3 - cgroup2\n - \n")
        .v2("job", "many\n", 0)
        .expect(80 * GIB, "MemAvailable");
}

#[test]
fn a_host_without_meminfo_is_an_error_that_names_the_file() {
    let nowhere = HostMemory::probe_at(Path::new("/nonexistent/argonet")).unwrap_err();
    assert!(nowhere.to_string().contains("proc/meminfo"), "{nowhere}");
    let old = FakeHost::new().with("proc/meminfo", "MemTotal: 5 kB\n");
    let error = HostMemory::probe_at(&old.root).unwrap_err();
    assert!(error.to_string().contains("MemAvailable"), "{error}");
    let garbage = FakeHost::new().with("proc/meminfo", "MemTotal: 5 kB\nMemAvailable: lots\n");
    assert!(HostMemory::probe_at(&garbage.root).is_err());
}

#[test]
fn this_host_can_be_probed() {
    let host = HostMemory::probe().unwrap();
    assert!(host.available_bytes() <= host.total_bytes());
    assert!(host.total_bytes() > 0);
}

#[test]
fn ranks_are_admitted_together_or_the_error_names_settings() {
    let fake = FakeHost::new()
        .in_group("0::/job\n")
        .v2("job", "1073741824\n", 0);
    let host = fake.probe();
    let available = host.available_bytes();
    admit(&[], &host).unwrap();
    admit(&[available / 4; 4], &host).unwrap();
    admit(&[available], &host).unwrap();
    let error = admit(&[available / 4, available, 1, 0], &host).unwrap_err();
    let SegmentError::NotEnoughMemory {
        needed,
        available: has,
        ranks,
        ..
    } = &error
    else {
        panic!("{error}");
    };
    assert_eq!(
        (*needed, *has, *ranks),
        (available / 4 + available + 1, available, 4)
    );
    let text = error.to_string();
    let each = format!("at most {} for each rank", HumanSize(available / 4));
    for part in [
        "the 4 ranks of this host",
        &each,
        &needed.to_string(),
        &available.to_string(),
        "/sys/fs/cgroup/job/memory.max",
        "ARGONET_SEGMENT",
        "GASNET_MAX_SEGSIZE",
        "fewer ranks",
    ] {
        assert!(text.contains(part), "no '{part}' in: {text}");
    }
    assert!(
        admit(&[u64::MAX, u64::MAX], &host).is_err(),
        "sums do not wrap"
    );
    assert!(admit(&[1020 * MIB], &host).is_err(), "5 % stay free");
}
