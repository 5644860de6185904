//! The description of the job that a launcher leaves in a rank's environment.

pub(crate) fn run(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match argonet_boot::check_job_description(&text) {
        Ok(()) => {
            let fields: Vec<&str> = text.split(':').collect();
            assert_eq!(fields.len(), 10, "{text:?}");
            let numbers: Vec<u32> = fields[1..9].iter().map(|f| f.parse().unwrap()).collect();
            let [rank, size, fds @ ..] = numbers.as_slice() else {
                unreachable!("eight numbers")
            };
            assert!(rank < size && *size <= argonet_boot::MAX_JOB_RANKS);
            assert!(fds.iter().all(|fd| *fd > 2 && i32::try_from(*fd).is_ok()));
        }
        Err(reason) => assert!(!reason.is_empty()),
    }
}
