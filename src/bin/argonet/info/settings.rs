//! The table of settings.

use std::io::{ErrorKind, Write};
use std::process::ExitCode;

use argonet_settings::{Settings, page};

/// Prints it in one of three forms.
pub(super) fn print(markdown: bool, man: bool) -> ExitCode {
    let text = match (markdown, man) {
        (true, _) => page::markdown(),
        (_, true) => page::manual(),
        _ => match Settings::from_environment() {
            Ok(settings) => page::text(&settings),
            Err(error) => {
                eprintln!("{error}");
                return ExitCode::from(2);
            }
        },
    };
    match std::io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        // Who reads has read enough.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("argonet info: {error}");
            ExitCode::FAILURE
        }
    }
}
