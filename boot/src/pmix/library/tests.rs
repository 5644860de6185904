//! The calls, of a library that does what a test wants.

use core::cell::RefCell;
use core::ptr::{null, null_mut};

use super::*;

/// What the library of this thread does.
struct Acts {
    /// Returned by all functions.
    code: c_int,
    /// Given by `PMIx_Get`.
    value: Option<(u16, Data)>,
    /// What was said to it.
    heard: Vec<String>,
}

thread_local! {
    static ACTS: RefCell<Acts> = const {
        RefCell::new(Acts { code: SUCCESS, value: None, heard: Vec::new() })
    };
}

fn hear(what: String) -> c_int {
    ACTS.with_borrow_mut(|acts| {
        acts.heard.push(what);
        acts.code
    })
}

fn words(key: &[u8]) -> String {
    CStr::from_bytes_until_nul(key)
        .unwrap()
        .to_string_lossy()
        .into_owned()
}

/// The name of a hint that has to be set.
///
/// # Safety
/// It is one, as the library's header says.
unsafe fn hint(info: *const Info) -> String {
    // SAFETY: as the header says.
    let info = unsafe { &*info };
    // SAFETY: as the header says.
    let is_set = unsafe { info.value.data.flag };
    assert_eq!((info.flags, info.value.kind, is_set), (0, BOOL, true));
    words(&info.key)
}

unsafe extern "C" fn version() -> *const c_char {
    c"9.9 of a test".as_ptr()
}

unsafe extern "C" fn error(code: c_int) -> *const c_char {
    match code {
        -1 => c"BAD\x1b[2J".as_ptr(),
        _ => null(),
    }
}

unsafe extern "C" fn init(own: *mut Process, info: *mut Info, count: usize) -> c_int {
    assert!(info.is_null() && count == 0);
    // SAFETY: as the header says.
    let own = unsafe { &mut *own };
    own.namespace[..3].copy_from_slice(b"job");
    own.rank = 3;
    hear("init".into())
}

unsafe extern "C" fn put(scope: u8, key: *const c_char, value: *mut Value) -> c_int {
    // SAFETY: as the header says.
    let key = unsafe { text(key) };
    // SAFETY: as the header says.
    let value = unsafe { &*value };
    assert_eq!(value.kind, BYTE_OBJECT);
    // SAFETY: as the header says.
    let value = unsafe {
        slice::from_raw_parts(value.data.object.bytes.cast::<u8>(), value.data.object.size)
    };
    hear(format!("put {scope} {key} {value:?}"))
}

unsafe extern "C" fn commit() -> c_int {
    hear("commit".into())
}

unsafe extern "C" fn fence(
    all: *const Process,
    count: usize,
    info: *const Info,
    infos: usize,
) -> c_int {
    // SAFETY: as the header says.
    let all = unsafe { &*all };
    // SAFETY: as the header says.
    let hint = unsafe { hint(info) };
    assert_eq!((all.rank, count, infos), (ALL_RANKS, 1, 1));
    hear(format!("fence of {} {hint}", words(&all.namespace)))
}

unsafe extern "C" fn get(
    owner: *const Process,
    key: *const c_char,
    info: *const Info,
    infos: usize,
    value: *mut *mut Value,
) -> c_int {
    // SAFETY: as the header says.
    let owner = unsafe { &*owner };
    // SAFETY: as the header says.
    let (key, hint) = unsafe { (text(key), hint(info)) };
    assert_eq!(infos, 1);
    let given = ACTS.with_borrow(|acts| acts.value);
    let given = given.map_or(null_mut(), |(kind, data)| {
        Box::into_raw(Box::new(Value { kind, data }))
    });
    // SAFETY: as the header says.
    unsafe { *value = given };
    hear(format!(
        "get {key} of {} {} {hint}",
        words(&owner.namespace),
        owner.rank
    ))
}

unsafe extern "C" fn abort(
    code: c_int,
    message: *const c_char,
    all: *mut Process,
    count: usize,
) -> c_int {
    assert!(all.is_null() && count == 0);
    // SAFETY: as the header says.
    let message = unsafe { text(message) };
    hear(format!("abort {code} {message}"))
}

unsafe extern "C" fn finalize(info: *const Info, count: usize) -> c_int {
    assert!(info.is_null() && count == 0);
    hear("finalize".into())
}

fn library() -> Library {
    let call = Functions {
        version,
        error,
        init,
        put,
        commit,
        fence,
        get,
        abort,
        finalize,
    };
    Library::with(call, "a test".into())
}

/// One that has connected.
fn connected() -> Library {
    let mut library = library();
    assert_eq!(library.init(), Ok(None));
    library
}

/// The library of this thread acts so from now on.
fn acts(code: c_int, value: Option<(u16, Data)>) {
    ACTS.with_borrow_mut(|acts| {
        acts.code = code;
        acts.value = value;
    });
}

fn of_bytes(bytes: *const u8, size: usize) -> (u16, Data) {
    let object = ByteObject {
        bytes: bytes.cast_mut().cast(),
        size,
    };
    (BYTE_OBJECT, Data { object })
}

#[test]
fn calls_say_what_the_headers_ask_for() {
    let session = connected();
    assert_eq!(session.describe(), "9.9 of a test (a test)");
    acts(SUCCESS, Some((UINT32, Data { uint32: 8 })));
    assert_eq!(session.place(), Ok((3, 8)));
    session.put("host-2", b"\x01\x02").unwrap();
    session.fence().unwrap();
    let value = [7; 300];
    acts(SUCCESS, Some(of_bytes(value.as_ptr(), value.len())));
    assert_eq!(session.get(2, "host-2"), Ok(Some(value.to_vec())));
    session.abort(9).unwrap();
    session.finish().unwrap();
    let heard = ACTS.with_borrow_mut(|acts| core::mem::take(&mut acts.heard));
    assert_eq!(
        heard,
        [
            "init",
            "get pmix.job.size of job 4294967294 pmix.immediate",
            "put 3 host-2 [1, 2]",
            "commit",
            "fence of job pmix.collect",
            "get host-2 of job 2 pmix.immediate",
            "abort 9 argonet: the job could not start",
            "finalize",
        ]
    );
}

#[test]
fn what_the_library_refuses_is_an_error_with_its_words() {
    let session = connected();
    acts(-1, None);
    let words = Err("BAD[2J (-1)".to_owned());
    assert_eq!(session.fence(), words);
    assert_eq!(session.put("k", b"v"), words);
    assert_eq!(session.abort(1), words);
    assert_eq!(session.finish(), words);
    assert_eq!(session.get(0, "k"), words);
    acts(-2, None);
    assert_eq!(session.fence(), Err(" (-2)".to_owned()), "no words");
    let error = library().init().unwrap_err();
    for part in ["PMIX_SERVER_URI2", "cannot be used:  (-2)", "has it ended"] {
        assert!(error.contains(part), "{error}");
    }
    acts(NOT_FOUND, None);
    assert_eq!(session.get(0, "k"), Ok(None));
    assert!(
        session
            .place()
            .unwrap_err()
            .contains("does not know the job's size")
    );
    assert!(session.put("a\0b", b"").is_err());
    assert!(session.get(0, "a\0b").is_err());
}

#[test]
fn values_of_another_kind_or_length_are_refused() {
    let session = connected();
    let get = |value: Option<(u16, Data)>| {
        acts(SUCCESS, value);
        session.get(0, "k")
    };
    let small = [1_u8; 4];
    assert_eq!(get(Some(of_bytes(null(), 0))), Ok(Some(Vec::new())));
    assert_eq!(get(Some(of_bytes(small.as_ptr(), 4))), Ok(Some(vec![1; 4])));
    for (value, reason) in [
        (None, "there is no value"),
        (Some((UINT32, Data { uint32: 4 })), "type 14, not 27"),
        (Some((3, Data { all: [8; 3] })), "type 3, not 27"),
        (Some(of_bytes(null(), 4)), "has 4 bytes"),
        (
            Some(of_bytes(small.as_ptr(), MAX_VALUE_BYTES + 1)),
            "has 32769 bytes, and at most 32768",
        ),
        (Some(of_bytes(small.as_ptr(), usize::MAX)), "at most 32768"),
    ] {
        let error = get(value).unwrap_err();
        assert!(error.contains(reason), "{reason}: {error}");
    }
    acts(SUCCESS, Some(of_bytes(small.as_ptr(), 4)));
    let error = session.place().unwrap_err();
    assert!(error.contains("type 27, not 14"), "{error}");
}

#[test]
fn files_that_are_no_libpmix_are_refused_with_what_to_do() {
    let error = Library::open(Some(Path::new("/nowhere/libpmix.so.2"))).err();
    let error = error.unwrap();
    for part in [
        "/nowhere/libpmix.so.2",
        "libpmix2",
        "ARGONET_PMIX_LIBRARY",
        "LD_LIBRARY_PATH",
    ] {
        assert!(error.contains(part), "{error}");
    }
    let error = Library::open(Some(Path::new("libc.so.6"))).err().unwrap();
    assert!(
        error.contains("libc.so.6 is no libpmix: it has no function PMIx_Get_version"),
        "{error}"
    );
}
