//! Sizes in bytes as users write them in settings: `4096`, `64.5MB`, `1 GiB`.
