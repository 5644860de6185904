//! The environment, for programs that read variables of their own.
//!
//! The library's own are in the table of settings.

use core::ffi::{CStr, c_char, c_int};
use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt as _;

use argonet_base::size::parse_size;
use argonet_settings::{Bytes, Kind, Settings, VERBOSE_ENV, Value, line};

use crate::export::export;
use crate::tools::errors::fatal;
use crate::tools::{state, text};

/// The value of a variable, which C keeps.
fn raw(name: &str) -> *mut c_char {
    let name = CString::new(name).unwrap_or_default();
    // SAFETY: a string that ends with 0.
    unsafe { libc::getenv(name.as_ptr()) }
}

/// The value of a variable, unless that is blank.
fn given(name: &str) -> Option<String> {
    // SAFETY: null or the environment's string, which is copied at once; the header forbids
    // changing the environment meanwhile.
    let value = unsafe { text(raw(name)) };
    let value = value.trim();
    (!value.is_empty()).then(|| value.to_owned())
}

/// The library's own settings under these names; a bad value ends the program.
pub(crate) fn settings_of(names: &[&str]) -> Settings {
    let pairs = names.iter().filter_map(|name| {
        let value = raw(name);
        if value.is_null() {
            return None;
        }
        // SAFETY: not null, so the environment's string, which is copied at once.
        let value = unsafe { CStr::from_ptr(value) };
        Some(((*name).into(), OsStr::from_bytes(value.to_bytes()).into()))
    });
    Settings::from_pairs(pairs).unwrap_or_else(|error| fatal("", &error.to_string()))
}

/// Whether one of these variables is set.
pub(crate) fn is_any_set(names: &[&str]) -> bool {
    names.iter().any(|name| !raw(name).is_null())
}

fn verbose() -> bool {
    settings_of(&["GASNET_VERBOSEENV"]).get(&VERBOSE_ENV)
}

/// Shows a variable, the first time that it is asked for, if the user wants to see them.
fn show(name: &str, shown: &str, is_default: bool) {
    if verbose() && state::first_shown(name) {
        eprintln!("{}", line(name, shown, is_default));
    }
}

fn bad(name: &str, value: &str, allowed: &str) -> ! {
    let value = value.escape_debug();
    let what = format!("the environment variable {name} is \"{value}\"; allowed: {allowed}");
    fatal("", &what)
}

/// The value of a variable as yes or no.
pub(crate) fn yes_or(name: &str, otherwise: bool) -> bool {
    let value = given(name);
    let yes = match &value {
        None => otherwise,
        Some(value) => match Kind::Boolean.parse(value) {
            Ok(Value::Boolean(yes)) => yes,
            _ => bad(name, value, &Kind::Boolean.allowed()),
        },
    };
    show(
        name,
        &Kind::Boolean.show(&Value::Boolean(yes)),
        value.is_none(),
    );
    yes
}

/// Reads a number.
///
/// With a unit, in bytes, it may have a fraction and a suffix, which replaces the unit.
fn number(value: &str, unit: u64) -> Option<i64> {
    let (negative, digits) = match value.trim().strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, value.trim().trim_start_matches('+')),
    };
    let hexadecimal = digits
        .strip_prefix("0x")
        .or_else(|| digits.strip_prefix("0X"));
    let plain = |digits: &str| digits.starts_with(|c: char| c.is_ascii_hexdigit());
    let magnitude = match hexadecimal {
        Some(digits) if plain(digits) => {
            u128::from(u64::from_str_radix(digits, 16).ok()?).checked_mul(unit.max(1).into())?
        }
        Some(_) => return None,
        None if unit == 0 => digits.parse::<u64>().ok().filter(|_| plain(digits))?.into(),
        None if digits.ends_with(|c: char| c.is_ascii_alphabetic()) => {
            parse_size(digits).ok()?.into()
        }
        None => in_units(digits, unit)?,
    };
    let signed = i128::try_from(magnitude).ok()?;
    i64::try_from(if negative { -signed } else { signed }).ok()
}

/// A decimal number of units, rounded down.
fn in_units(digits: &str, unit: u64) -> Option<u128> {
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let fraction = &fraction[..fraction.len().min(18)];
    let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if !all_digits(whole) || !all_digits(fraction) || (whole.is_empty() && fraction.is_empty()) {
        return None;
    }
    let parse = |part: &str| {
        if part.is_empty() {
            Some(0)
        } else {
            part.parse::<u64>().ok()
        }
    };
    let unit = u128::from(unit);
    let part = u128::from(parse(fraction)?) * unit / 10u128.pow(fraction.len() as u32);
    u128::from(parse(whole)?)
        .checked_mul(unit)?
        .checked_add(part)
}

fn number_allowed(unit: u64) -> &'static str {
    match unit {
        0 => "a whole number, decimal or hexadecimal with 0x, of 64 bits",
        _ => "a size such as 4096, 64.5MB or 1 GB, below 2^63",
    }
}

fn formatted(value: i64, is_size: bool) -> String {
    if !is_size {
        return value.to_string();
    }
    let size = Value::Size(Bytes(value.unsigned_abs()));
    let sign = if value < 0 { "-" } else { "" };
    sign.to_owned() + &Kind::Text.show(&size)
}

/// A decimal number, or a fraction of two.
fn decimal(value: &str) -> Option<f64> {
    let one = |text: &str| match Kind::Number.parse(text) {
        Ok(Value::Number(number)) => Some(number),
        _ => None,
    };
    match value.split_once('/') {
        None => one(value),
        Some((above, below)) => {
            Some(one(above)? / one(below)?).filter(|quotient| quotient.is_finite())
        }
    }
}

fn set(name: *const c_char, change: impl FnOnce(*const c_char) -> c_int, function: &str) {
    // SAFETY: a string or null, as the header says.
    let known = unsafe { text(name) };
    // A null name is taken for an empty one, which is refused too.
    if known.is_empty() || change(name) != 0 {
        fatal(
            function,
            &format!("\"{known}\" cannot be the name of a variable"),
        );
    }
}

export! {
    /// The value of a variable, or null.
    fn argonett_getenv(name: *const c_char) -> *mut c_char {
        // SAFETY: a string or null, as the header says.
        raw(&unsafe { text(name) })
    }

    /// The value of a variable, or the text given where it has none.
    fn argonett_getenv_or(name: *const c_char, otherwise: *const c_char) -> *mut c_char {
        // SAFETY: both are strings or null, as the header says.
        let (name, default) = unsafe { (text(name), text(otherwise)) };
        let value = given(&name);
        if otherwise.is_null() && value.is_none() {
            show(&name, "*not set*", true);
        } else {
            show(&name, value.as_deref().unwrap_or(&default), value.is_none());
        }
        match value {
            Some(_) => raw(&name),
            None => otherwise.cast_mut(),
        }
    }

    /// Whether a variable says yes; `otherwise` where it has no value.
    fn argonett_getenv_yesno(name: *const c_char, otherwise: c_int) -> c_int {
        // SAFETY: a string or null, as the header says.
        c_int::from(yes_or(&unsafe { text(name) }, otherwise != 0))
    }

    /// The number that a variable holds, in bytes if `unit` is not 0.
    fn argonett_getenv_int(name: *const c_char, otherwise: i64, unit: u64) -> i64 {
        // SAFETY: a string or null, as the header says.
        let name = unsafe { text(name) };
        let value = given(&name);
        let number = match &value {
            None => otherwise,
            Some(value) => number(value, unit).unwrap_or_else(|| bad(&name, value, number_allowed(unit))),
        };
        show(&name, &formatted(number, unit != 0), value.is_none());
        number
    }

    /// The decimal number or fraction that a variable holds.
    fn argonett_getenv_dbl(name: *const c_char, otherwise: f64) -> f64 {
        // SAFETY: a string or null, as the header says.
        let name = unsafe { text(name) };
        let value = given(&name);
        let number = match &value {
            None => otherwise,
            Some(value) => decimal(value).unwrap_or_else(|| bad(&name, value, "a decimal number, or a fraction such as 3/8")),
        };
        show(&name, &number.to_string(), value.is_none());
        number
    }

    /// Sets a variable of this process.
    ///
    /// Not while another thread reads the environment.
    fn argonett_setenv(name: *const c_char, value: *const c_char) {
        let value = if value.is_null() { c"".as_ptr() } else { value };
        // SAFETY: both are strings.
        set(name, |name| unsafe { libc::setenv(name, value, 1) }, "gasnett_setenv");
    }

    /// Removes a variable of this process.
    ///
    /// Not while another thread reads the environment.
    fn argonett_unsetenv(name: *const c_char) {
        // SAFETY: a string.
        set(name, |name| unsafe { libc::unsetenv(name) }, "gasnett_unsetenv");
    }

    /// Whether the user wants to see the variables that are read.
    fn argonett_verboseenv() -> c_int {
        c_int::from(verbose())
    }

    /// Shows a number, if the user wants that.
    fn argonett_envint_display(name: *const c_char, value: i64, is_default: c_int, is_size: c_int) {
        // SAFETY: a string or null, as the header says.
        show(&unsafe { text(name) }, &formatted(value, is_size != 0), is_default != 0);
    }

    /// Shows a decimal number, if the user wants that.
    fn argonett_envdbl_display(name: *const c_char, value: f64, is_default: c_int) {
        // SAFETY: a string or null, as the header says.
        show(&unsafe { text(name) }, &value.to_string(), is_default != 0);
    }

    /// Shows a text, if the user wants that.
    fn argonett_envstr_display(name: *const c_char, value: *const c_char, is_default: c_int) {
        // SAFETY: both are strings or null, as the header says.
        let (name, value) = unsafe { (text(name), text(value)) };
        show(&name, &value, is_default != 0);
    }

    /// Writes a number so that [`argonett_parse_int`] reads it back, cut to the buffer.
    ///
    /// Returns the buffer.
    fn argonett_format_number(value: i64, to: *mut c_char, bytes: usize, is_size: c_int) -> *mut c_char {
        if to.is_null() || bytes == 0 {
            return to;
        }
        let text = formatted(value, is_size != 0);
        let length = text.len().min(bytes - 1);
        // SAFETY: `to` has `bytes` bytes, as the header says, of which `length + 1` are written.
        unsafe {
            std::ptr::copy_nonoverlapping(text.as_ptr().cast(), to, length);
            *to.add(length) = 0;
        }
        to
    }

    /// Reads a number, in bytes if `unit` is not 0.
    ///
    /// A text that is none ends the program.
    fn argonett_parse_int(value: *const c_char, unit: u64) -> i64 {
        // SAFETY: a string or null, as the header says.
        let value = unsafe { text(value) };
        number(&value, unit).unwrap_or_else(|| {
            let what = format!("\"{}\" is no number; allowed: {}", value.escape_debug(), number_allowed(unit));
            fatal("gasnett_parse_int", &what)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read() {
        for (value, unit, expected) in [
            ("42", 0, Some(42)),
            ("-0x10", 0, Some(-16)),
            ("9223372036854775807", 0, Some(i64::MAX)),
            ("-9223372036854775808", 0, Some(i64::MIN)),
            ("9223372036854775808", 0, None),
            ("1.5", 0, None),
            ("1KB", 0, None),
            ("--1", 0, None),
            ("0x", 0, None),
            ("0x+1", 0, None),
            ("", 0, None),
            ("3", 1024, Some(3072)),
            ("1.5", 1024, Some(1536)),
            ("2", 4096, Some(8192)),
            ("64.5MB", 1024, Some(67_633_152)),
            ("7B", 1 << 20, Some(7)),
            ("0x10", 1024, Some(16384)),
            ("-1KB", 1, Some(-1024)),
            (".", 1024, None),
            ("5 parsecs", 1024, None),
            ("8388608TB", 1, None),
        ] {
            assert_eq!(number(value, unit), expected, "{value:?} {unit}");
        }
    }

    #[test]
    fn formatted_numbers_are_read_back() {
        for shift in 0..=61 {
            for value in [1i64 << shift, -(1i64 << shift), (1i64 << shift) + 1, 0] {
                for (is_size, unit) in [(true, 1), (true, 1024), (false, 0)] {
                    assert_eq!(number(&formatted(value, is_size), unit), Some(value));
                }
            }
        }
    }

    #[test]
    fn fractions_are_decimal_numbers() {
        assert_eq!(decimal("3/8"), Some(0.375));
        assert_eq!(decimal("-1e4"), Some(-1e4));
        for bad in ["1/0", "nan", "inf", "1/2/3", "x", "/", ""] {
            assert_eq!(decimal(bad), None, "{bad}");
        }
    }
}
