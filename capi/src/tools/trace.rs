//! The functions behind the macros `GASNETT_TRACE_*` and `GASNETT_STATS_*`.

use core::ffi::{c_char, c_int, c_void};

use argonet_settings::{Letter, Letters};
use argonet_trace::Which;

use crate::export::{export, names};
use crate::tools::errors::fatal;
use crate::tools::state;
use crate::tools::text;

/// A function of the client's that writes lines by the function that it gets, which formats as
/// printf does.
pub(crate) type Callback = Option<unsafe extern "C" fn(Line)>;
/// Argument of a `Callback`: a function of the header's, which C alone can call.
pub(crate) type Line = Option<unsafe extern "C" fn(*const c_void)>;

names! {
    *mut *const c_char = "const char **",
    Callback = "argonett_stats_callback_t",
    Line = "argonett_stats_line_t",
}

fn which(statistics: c_int) -> Which {
    match statistics {
        0 => Which::Trace,
        _ => Which::Statistics,
    }
}

/// The letters that the macros have.
fn letter(letter: c_int) -> Letter {
    match u8::try_from(letter) {
        Ok(b'N') => Letter::Line,
        Ok(b'U') => Letter::Always,
        _ => Letter::Client,
    }
}

fn call_back() {
    if let Some((Some(callback), line)) = state::stats_callback().get() {
        // SAFETY: the client's function, with the header's, as the macro passes both.
        unsafe { callback(*line) };
    }
}

export! {
    /// Whether a line of that letter goes anywhere.
    fn argonett_trace_wants(letter_of: c_int, statistics: c_int) -> c_int {
        c_int::from(argonet_trace::wants(which(statistics), letter(letter_of)))
    }

    /// Writes a message.
    fn argonett_trace_text(letter_of: c_int, statistics: c_int, message: *const c_char) {
        // SAFETY: a string or null, as the header says.
        let message = unsafe { text(message) };
        match which(statistics) {
            Which::Trace => argonet_trace::note(letter(letter_of), &message),
            Which::Statistics => argonet_trace::count_text(letter(letter_of), &message),
        }
    }

    /// The letters that are traced or counted; none where that is off.
    ///
    /// Good until this thread asks again.
    fn argonett_trace_mask(statistics: c_int) -> *const c_char {
        let letters = argonet_trace::letters(which(statistics));
        state::keep_letters(letters.map(|letters| letters.to_string()).unwrap_or_default())
    }

    /// Has other letters traced or counted from now on.
    fn argonett_trace_set_mask(statistics: c_int, mask: *const c_char) {
        if argonet_trace::letters(which(statistics)).is_none() {
            return;
        }
        // SAFETY: a string or null, as the header says.
        let given = unsafe { text(mask) };
        let Some(letters) = Letters::parse(&given) else {
            let (function, allowed) = match statistics {
                0 => ("GASNETT_TRACE_SETMASK", Letters::ALL),
                _ => ("GASNETT_STATS_SETMASK", Letters::ALL),
            };
            fatal(function, &format!("the mask is \"{}\"; give some of {allowed}, or ^ and letters for all but those", given.escape_debug()));
        };
        argonet_trace::set_letters(which(statistics), letters);
    }

    /// Whether puts and gets of a rank to itself are traced.
    fn argonett_trace_local() -> c_int {
        c_int::from(argonet_trace::local())
    }

    /// Has them traced, or not.
    fn argonett_trace_set_local(local: c_int) {
        argonet_trace::set_local(local != 0);
    }

    /// Where the thread is in the client's source.
    ///
    /// The file is a string that stays, or null for the same.
    fn argonett_trace_set_source(file: *const c_char, line: u32) {
        // SAFETY: as the header asks.
        unsafe { argonet_trace::set_source(file, line) };
    }

    /// Where the thread is, as it has recorded it.
    fn argonett_trace_source(file: *mut *const c_char, line: *mut u32) {
        let (path, number) = argonet_trace::source();
        // SAFETY: places of the caller's, as the header asks.
        unsafe {
            *file = path;
            *line = number;
        }
    }

    /// A place that the thread records does not count until it has thawed as often.
    fn argonett_trace_freeze() {
        argonet_trace::freeze_source();
    }

    /// The contrary.
    fn argonett_trace_thaw() {
        argonet_trace::thaw_source();
    }

    /// Has `callback` called when statistics are written, with `line`.
    fn argonett_stats_init(callback: Callback, line: Line) {
        let _ = state::stats_callback().set((callback, line));
        argonet_trace::on_summary(call_back);
    }

    /// Writes the statistics now, and counts from 0 again if that is wanted.
    fn argonett_stats_dump(reset: c_int) {
        argonet_trace::dump_statistics(reset != 0);
    }
}
