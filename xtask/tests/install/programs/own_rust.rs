//! A library of a client: it allocates, has threads, and a panic that it catches.

/// The number, with additions of three threads.
#[unsafe(no_mangle)]
pub extern "C" fn own_rust(number: i32) -> i32 {
    let threads: Vec<_> = (0..3)
        .map(|i| std::thread::spawn(move || vec![i; 2].iter().sum::<i32>()))
        .collect();
    let sum: i32 = threads.into_iter().map(|t| t.join().unwrap_or(1000)).sum();
    std::panic::set_hook(Box::new(|_| {}));
    let panicked = std::panic::catch_unwind(|| {
        if number > 0 {
            panic!("{number}");
        }
    });
    if panicked.is_err() { number + sum } else { -1 }
}
