//! Libraries and offers, with a library that is made for it.

pub(crate) mod fake;

use super::abi::{self, Info};
use super::library::Functions;
use super::offer::Wish;
use super::{FabricError, Library, Version};
use core::ffi::{c_char, c_int};
use core::net::IpAddr;
use fake::{PROVIDER, Provider, fake, library};

const WISH: Wish = Wish {
    endpoint: (abi::EP_DGRAM, "datagram endpoints"),
    caps: abi::MSG,
    mode: 0,
    mr_mode: 0,
    threading: abi::THREAD_DOMAIN,
    order: 0,
    resource_mgmt: abi::RM_UNSPEC,
    is_reliable: false,
    setting: "THE_SETTING",
};

const NAMED: [Provider; 3] = [
    PROVIDER,
    Provider {
        name: c"net",
        at: Some("10.1.2.3"),
        ..PROVIDER
    },
    Provider {
        name: c"net",
        at: Some("::1"),
        ..PROVIDER
    },
];

/// The error of a wish.
fn error(library: &Library, provider: Option<&str>, at: Option<IpAddr>) -> String {
    let offer = library.offer(&WISH, provider, at);
    offer.map(|_| ()).unwrap_err().to_string()
}

fn says(text: &str, wanted: &[&str]) {
    for word in wanted {
        assert!(text.contains(word), "no {word} in: {text}");
    }
}

#[test]
fn a_library_that_is_too_old_is_refused_and_a_newer_one_is_not() {
    fake(|fake| fake.version = abi::version(1, 10));
    let old = library(&[PROVIDER]).unwrap_err();
    assert!(matches!(old, FabricError::TooOld { .. }));
    says(
        &old.to_string(),
        &[
            "libfake is libfabric 1.10",
            "1.11",
            "ARGONET_FABRIC_LIBRARY",
        ],
    );
    fake(|fake| fake.version = abi::version(2, 6));
    let new = library(&[PROVIDER]).unwrap();
    assert_eq!(new.version(), Version(abi::version(2, 6)));
    assert_eq!(format!("{new:?}"), "libfabric 2.6 (libfake)");
}

#[test]
fn without_a_provider_the_error_says_what_was_looked_for() {
    let none = library(&[]).unwrap();
    let wanted = [
        "libfabric 1.11 (libfake)",
        "no provider with datagram endpoints",
        "FI_PROVIDER",
    ];
    says(&error(&none, Some("net"), None), &wanted);
}

#[test]
fn the_first_offer_of_a_provider_is_taken() {
    let all = library(&NAMED).unwrap();
    let first = all.offer(&WISH, None, None).unwrap();
    assert_eq!(first.provider(), "fake");
    assert_eq!(first.version().to_string(), "3.4");
    let named = all.offer(&WISH, Some("net"), None).unwrap();
    assert_eq!((named.provider(), named.format()), ("net", 2));
    let wanted = ["\"other\"", "fake, net;", "THE_SETTING"];
    says(&error(&all, Some("other"), None), &wanted);
}

#[test]
fn a_provider_of_the_internet_is_taken_at_its_address() {
    let all = library(&NAMED).unwrap();
    let at = |text: &str| Some(text.parse().unwrap());
    let offer = all.offer(&WISH, Some("net"), at("::1"));
    assert_eq!(offer.unwrap().provider(), "net");
    let wanted = ["provider net", "10.0.0.9", "ARGONET_TCP_INTERFACES"];
    says(&error(&all, Some("net"), at("10.0.0.9")), &wanted);
    // Others have addresses of their own.
    assert!(all.offer(&WISH, Some("fake"), at("10.0.0.9")).is_ok());
}

#[test]
fn modes_are_of_a_direction_or_of_both() {
    let of = |modes| {
        let library = library(&[Provider { modes, ..PROVIDER }]).unwrap();
        library.offer(&WISH, None, None).unwrap().modes()
    };
    let prefix = abi::MSG_PREFIX;
    assert_eq!(of([0, 0, 0]), [0, 0]);
    assert_eq!(of([prefix, 0, 0]), [prefix, prefix]);
    assert_eq!(of([prefix, 0, prefix]), [0, prefix]);
    assert_eq!(of([prefix | 4, prefix, prefix]), [prefix | 4; 2]);
}

#[test]
fn an_entry_without_attributes_is_passed_over() {
    let all = library(&NAMED).unwrap();
    let functions = Functions {
        getinfo: {
            unsafe extern "C" fn bare(
                _api: u32,
                _node: *const c_char,
                _service: *const c_char,
                _flags: u64,
                _hints: *const Info,
                found: *mut *mut Info,
            ) -> c_int {
                // SAFETY: an entry of zeros is one, and the place is the caller's.
                unsafe { *found = Box::into_raw(Box::new(core::mem::zeroed())) };
                0
            }
            bare
        },
        freeinfo: {
            unsafe extern "C" fn free(info: *mut Info) {
                // SAFETY: of `bare`, or of the hints, once; so are the attributes, if there are.
                unsafe {
                    match (*info).tx_attr.is_null() {
                        true => drop(Box::from_raw(info)),
                        false => fake::freeinfo(info),
                    }
                }
            }
            free
        },
        ..all.call
    };
    let bare = Library::with(functions, "bare").unwrap();
    let text = error(&bare, None, None);
    says(&text, &["no provider \"\"", "but ;"]);
}
