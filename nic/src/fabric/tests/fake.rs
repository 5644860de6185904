//! A library for tests, with the demands and faults that a test wants.
//!
//! Its endpoint sends to itself. All that it has belongs to the thread of the test.

use crate::fabric::abi::{
    self, AvAttr, AvOps, CmOps, CqAttr, CqEntry, CqError, CqOps, DomainAttr, DomainOps, EpAttr,
    FabricAttr, FabricOps, Fid, FidAv, FidCq, FidDomain, FidEp, FidFabric, FidMr, Info, MrOps,
    MsgOps, Ops, RxAttr, TxAttr,
};
use crate::fabric::error::FabricError;
use crate::fabric::library::{Functions, Library};
use core::cell::RefCell;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::mem::zeroed;
use core::ptr::{null, null_mut};
use std::collections::VecDeque;

/// What a provider offers.
#[derive(Clone, Copy)]
pub(crate) struct Provider {
    pub(crate) name: &'static CStr,
    /// Where its interface is, as text; `None` if its addresses are not of the Internet.
    pub(crate) at: Option<&'static str>,
    /// Of the whole, of sends, of receives.
    pub(crate) modes: [u64; 3],
    pub(crate) mr_mode: c_int,
    pub(crate) prefix: usize,
    pub(crate) longest: usize,
    pub(crate) inject: usize,
    /// Of both queues.
    pub(crate) size: usize,
    pub(crate) progress: u32,
    /// Whether it keeps the order that is wanted, and sees to its own resources if that is wanted.
    pub(crate) is_orderly: bool,
    pub(crate) sees_to_itself: bool,
}

pub(crate) const PROVIDER: Provider = Provider {
    name: c"fake",
    at: None,
    modes: [0; 3],
    mr_mode: 0,
    prefix: 0,
    longest: 100,
    inject: 10,
    size: 32,
    progress: 1,
    is_orderly: true,
    sees_to_itself: true,
};

/// An operation that the library has.
#[derive(Clone, Copy)]
pub(crate) struct Operation {
    pub(crate) at: *mut u8,
    pub(crate) bytes: usize,
    pub(crate) descriptor: *mut c_void,
    pub(crate) context: *mut c_void,
}

/// What a queue answers next.
pub(crate) enum Answer {
    Done(*mut c_void, usize),
    Error(*mut c_void),
    /// The read itself fails, again and again.
    Broken,
}

/// The library's state.
pub(crate) struct Fake {
    pub(crate) version: u32,
    pub(crate) providers: Vec<Provider>,
    /// Whether a queue may have a descriptor.
    pub(crate) wakes: bool,
    /// Whether endpoints have a function to post buffers, as a whole table has.
    pub(crate) is_whole: bool,
    /// So many sends find no room.
    pub(crate) full: u32,
    /// What a send answers, but 0.
    pub(crate) refuses: isize,
    /// Sends that have not ended, and posted buffers.
    pub(crate) sends: Vec<Operation>,
    pub(crate) posted: VecDeque<Operation>,
    pub(crate) injected: usize,
    pub(crate) sent: VecDeque<Answer>,
    pub(crate) came: VecDeque<Answer>,
    /// How many were made.
    queues: usize,
    /// Memory that was registered.
    pub(crate) region: (usize, usize),
    pub(crate) may_sleep: bool,
    /// Objects that were closed.
    pub(crate) closed: Vec<&'static str>,
}

thread_local! {
    static FAKE: RefCell<Fake> = const {
        RefCell::new(Fake {
            version: abi::API,
            providers: Vec::new(),
            wakes: true,
            is_whole: true,
            full: 0,
            refuses: 0,
            sends: Vec::new(),
            posted: VecDeque::new(),
            injected: 0,
            sent: VecDeque::new(),
            came: VecDeque::new(),
            queues: 0,
            region: (0, 0),
            may_sleep: true,
            closed: Vec::new(),
        })
    };
}

/// The state of this thread's library.
pub(crate) fn fake<R>(look: impl FnOnce(&mut Fake) -> R) -> R {
    FAKE.with_borrow_mut(look)
}

/// A library of these providers.
pub(crate) fn library(providers: &[Provider]) -> Result<Library, FabricError> {
    fake(|fake| fake.providers = providers.to_vec());
    Library::with(FUNCTIONS, "libfake")
}

/// Ends all sends: what was sent comes where a buffer is posted.
pub(crate) fn deliver() {
    fake(|fake| {
        let [prefix, tx] = fake.prefixes();
        for send in core::mem::take(&mut fake.sends) {
            fake.sent.push_back(Answer::Done(send.context, 0));
            let Some(to) = fake.posted.pop_front() else {
                continue;
            };
            let len = send.bytes - tx;
            assert!(prefix + len <= to.bytes, "the buffer is too short");
            // SAFETY: both are the library's now, and have so much room.
            unsafe {
                to.at.write_bytes(0xee, prefix);
                to.at.add(prefix).copy_from(send.at.add(tx), len);
            }
            fake.came.push_back(Answer::Done(to.context, prefix + len));
        }
    });
}

impl Fake {
    fn close(&mut self, what: &'static str) {
        self.closed.push(what);
        if what == "endpoint" {
            self.posted.clear();
            self.sends.clear();
            self.sent.clear();
            self.came.clear();
        }
    }

    /// Bytes before each datagram: of receives, and of sends.
    fn prefixes(&self) -> [usize; 2] {
        let Provider { modes, prefix, .. } = self.providers[0];
        let [both, tx, rx] = modes.map(|mode| mode & abi::MSG_PREFIX != 0);
        let of = |one: bool| {
            if one || both && !(tx || rx) {
                prefix
            } else {
                0
            }
        };
        [of(rx), of(tx)]
    }
}

const FUNCTIONS: Functions = Functions {
    version,
    strerror,
    getinfo,
    freeinfo,
    dupinfo,
    fabric,
};

unsafe extern "C" fn version() -> u32 {
    fake(|fake| fake.version)
}

unsafe extern "C" fn strerror(_code: c_int) -> *const c_char {
    c"the library's words".as_ptr()
}

/// What a client wants.
#[derive(Default)]
struct Wanted {
    endpoint: u32,
    order: u64,
    resource_mgmt: u32,
}

fn boxed<T>(value: T) -> *mut T {
    Box::into_raw(Box::new(value))
}

fn entry(provider: &Provider, wanted: &Wanted) -> *mut Info {
    // SAFETY: numbers and pointers, of which zeros are values.
    let zeros: (Info, TxAttr, RxAttr, EpAttr, DomainAttr, FabricAttr) = unsafe { zeroed() };
    let (mut info, mut tx, mut rx, mut endpoint, mut domain, mut fabric) = zeros;
    tx.mode = provider.modes[1];
    tx.inject_size = provider.inject;
    tx.size = provider.size;
    rx.mode = provider.modes[2];
    rx.size = provider.size;
    endpoint.endpoint = wanted.endpoint;
    let order = if provider.is_orderly { wanted.order } else { 0 };
    (tx.msg_order, rx.msg_order) = (order, order);
    domain.resource_mgmt = match provider.sees_to_itself {
        true => wanted.resource_mgmt,
        false => abi::RM_DISABLED,
    };
    endpoint.max_msg_size = provider.longest;
    endpoint.msg_prefix_size = provider.prefix;
    domain.mr_mode = provider.mr_mode;
    domain.data_progress = provider.progress;
    fabric.prov_name = provider.name.as_ptr().cast_mut();
    fabric.prov_version = abi::version(3, 4);
    info.mode = provider.modes[0];
    info.addr_format = if provider.at.is_some() { 2 } else { 99 };
    info.tx_attr = boxed(tx);
    info.rx_attr = boxed(rx);
    info.ep_attr = boxed(endpoint);
    info.domain_attr = boxed(domain);
    info.fabric_attr = boxed(fabric);
    boxed(info)
}

unsafe extern "C" fn dupinfo(info: *const Info) -> *mut Info {
    assert!(info.is_null());
    entry(&PROVIDER, &Wanted::default())
}

pub(super) unsafe extern "C" fn freeinfo(mut info: *mut Info) {
    while !info.is_null() {
        // SAFETY: of `entry`, once.
        unsafe {
            let one = Box::from_raw(info);
            drop(Box::from_raw(one.tx_attr));
            drop(Box::from_raw(one.rx_attr));
            drop(Box::from_raw(one.ep_attr));
            drop(Box::from_raw(one.domain_attr));
            drop(Box::from_raw(one.fabric_attr));
            info = one.next;
        }
    }
}

unsafe extern "C" fn getinfo(
    api: u32,
    node: *const c_char,
    _service: *const c_char,
    flags: u64,
    hints: *const Info,
    found: *mut *mut Info,
) -> c_int {
    // SAFETY: hints and texts of the caller.
    let (wanted, node) = unsafe {
        let node = (!node.is_null()).then(|| CStr::from_ptr(node).to_str().unwrap());
        let wanted = Wanted {
            endpoint: (*(*hints).ep_attr).endpoint,
            order: (*(*hints).tx_attr).msg_order,
            resource_mgmt: (*(*hints).domain_attr).resource_mgmt,
        };
        (wanted, node)
    };
    assert_eq!(api, abi::API);
    assert_eq!(flags != 0, node.is_some());
    let providers = fake(|fake| fake.providers.clone());
    let mut list = null_mut();
    for provider in providers.iter().rev() {
        if node.is_none() || provider.at == node {
            let one = entry(provider, &wanted);
            // SAFETY: just made.
            unsafe { (*one).next = list };
            list = one;
        }
    }
    // SAFETY: a place of the caller's.
    unsafe { *found = list };
    if list.is_null() { -abi::ENODATA } else { 0 }
}

/// Tables that never change.
struct Tables<T>(T);

// SAFETY: nothing writes them.
unsafe impl<T> Sync for Tables<T> {}

/// Closes an object of a type, and keeps its name.
macro_rules! closes {
    ($($table:ident $name:literal $kind:ty;)*) => {
        $(static $table: Tables<Ops> = Tables(Ops {
            size: size_of::<Ops>(),
            close: Some({
                unsafe extern "C" fn close(object: *mut Fid) -> c_int {
                    // SAFETY: of this file, of this type, once.
                    drop(unsafe { Box::from_raw(object.cast::<$kind>()) });
                    fake(|fake| fake.close($name));
                    0
                }
                close
            }),
            bind: Some(bind),
            control: Some(control),
        });)*
    };
}

closes! {
    OF_FABRIC "fabric" FidFabric;
    OF_DOMAIN "domain" FidDomain;
    OF_REGION "region" FidMr;
    OF_ADDRESSES "addresses" FidAv;
    OF_QUEUE "queue" FidCq;
    OF_ENDPOINT "endpoint" FidEp;
}

fn fid(class: usize, ops: &'static Tables<Ops>) -> Fid {
    Fid {
        class,
        context: null_mut(),
        ops: &raw const ops.0,
    }
}

unsafe extern "C" fn bind(_object: *mut Fid, _to: *mut Fid, _flags: u64) -> c_int {
    0
}

unsafe extern "C" fn control(_object: *mut Fid, command: c_int, argument: *mut c_void) -> c_int {
    if command == abi::GETWAIT {
        // SAFETY: a place for a descriptor.
        unsafe { *argument.cast::<c_int>() = 0 };
    }
    0
}

unsafe extern "C" fn fabric(
    _attributes: *mut FabricAttr,
    at: *mut *mut FidFabric,
    _context: *mut c_void,
) -> c_int {
    let object = FidFabric {
        fid: fid(1, &OF_FABRIC),
        ops: &raw const FABRIC.0,
        api_version: abi::API,
    };
    // SAFETY: a place of the caller's.
    unsafe { *at = boxed(object) };
    0
}

static FABRIC: Tables<FabricOps> = Tables(FabricOps {
    size: size_of::<FabricOps>(),
    domain: Some(domain),
    passive_ep: null(),
    eq_open: null(),
    wait_open: null(),
    trywait: Some(trywait),
});

unsafe extern "C" fn trywait(_fabric: *mut Fid, _objects: *mut *mut Fid, count: c_int) -> c_int {
    assert_eq!(count, 1);
    if fake(|fake| fake.may_sleep) { 0 } else { -11 }
}

unsafe extern "C" fn domain(
    _fabric: *mut Fid,
    _info: *mut Info,
    at: *mut *mut c_void,
    _context: *mut c_void,
) -> c_int {
    let object = FidDomain {
        fid: fid(2, &OF_DOMAIN),
        ops: &raw const DOMAIN.0,
        mr: &raw const REGISTERS.0,
    };
    // SAFETY: a place of the caller's.
    unsafe { *at = boxed(object).cast() };
    0
}

static DOMAIN: Tables<DomainOps> = Tables(DomainOps {
    size: size_of::<DomainOps>(),
    av_open: Some(av_open),
    cq_open: Some(cq_open),
    endpoint: Some(endpoint),
});

static REGISTERS: Tables<MrOps> = Tables(MrOps {
    size: size_of::<MrOps>(),
    reg: Some(reg),
});

/// By which operations name the registered memory.
pub(crate) const DESCRIPTOR: usize = 0x5eed;

unsafe extern "C" fn reg(
    _domain: *mut Fid,
    memory: *const c_void,
    bytes: usize,
    access: u64,
    _offset: u64,
    _key: u64,
    _flags: u64,
    at: *mut *mut c_void,
    _context: *mut c_void,
) -> c_int {
    assert_eq!(access, abi::SEND | abi::RECV);
    fake(|fake| fake.region = (memory.addr(), bytes));
    let object = FidMr {
        fid: fid(12, &OF_REGION),
        mem_desc: core::ptr::without_provenance_mut(DESCRIPTOR),
        key: 0,
    };
    // SAFETY: a place of the caller's.
    unsafe { *at = boxed(object).cast() };
    0
}

unsafe extern "C" fn av_open(
    _domain: *mut Fid,
    _attributes: *mut AvAttr,
    at: *mut *mut c_void,
    _context: *mut c_void,
) -> c_int {
    let object = FidAv {
        fid: fid(11, &OF_ADDRESSES),
        ops: &raw const ADDRESSES.0,
    };
    // SAFETY: a place of the caller's.
    unsafe { *at = boxed(object).cast() };
    0
}

static ADDRESSES: Tables<AvOps> = Tables(AvOps {
    size: size_of::<AvOps>(),
    insert: Some(insert),
});

unsafe extern "C" fn insert(
    _addresses: *mut Fid,
    address: *const c_void,
    count: usize,
    peer: *mut u64,
    _flags: u64,
    _context: *mut c_void,
) -> c_int {
    assert_eq!(count, 1);
    // SAFETY: an address of this library, of one byte, and a place of the caller's.
    unsafe {
        let first: u8 = *address.cast();
        if first == 0xff {
            return -22;
        }
        *peer = first.into();
    }
    1
}

unsafe extern "C" fn cq_open(
    _domain: *mut Fid,
    attributes: *mut CqAttr,
    at: *mut *mut c_void,
    _context: *mut c_void,
) -> c_int {
    // SAFETY: attributes of the caller's.
    let waits = unsafe { (*attributes).wait_obj } == abi::WAIT_FD;
    if waits && !fake(|fake| fake.wakes) {
        return -abi::ENOSYS;
    }
    // The queue of sends is made first.
    let number = fake(|fake| {
        fake.queues += 1;
        fake.queues
    });
    let object = FidCq {
        fid: fid(number, &OF_QUEUE),
        ops: &raw const QUEUE.0,
    };
    // SAFETY: a place of the caller's.
    unsafe { *at = boxed(object).cast() };
    0
}

static QUEUE: Tables<CqOps> = Tables(CqOps {
    size: size_of::<CqOps>(),
    read: Some(read),
    readfrom: null(),
    readerr: Some(readerr),
    sread: null(),
    sreadfrom: null(),
    signal: null(),
    strerror: Some(words),
});

/// The answers of a queue.
fn answers(fake: &mut Fake, queue: *mut Fid) -> &mut VecDeque<Answer> {
    // SAFETY: an object of this file.
    match unsafe { (*queue).class } % 2 {
        1 => &mut fake.sent,
        _ => &mut fake.came,
    }
}

unsafe extern "C" fn read(queue: *mut Fid, entries: *mut CqEntry, count: usize) -> isize {
    fake(|fake| {
        let answers = answers(fake, queue);
        let mut found = 0;
        while found < count
            && let Some(Answer::Done(context, len)) = answers.front()
        {
            let (context, len) = (*context, *len);
            answers.pop_front();
            // SAFETY: room for as many as the caller says.
            unsafe {
                *entries.add(found) = CqEntry {
                    context,
                    flags: 0,
                    len,
                }
            };
            found += 1;
        }
        match (found, answers.front()) {
            (0, None) => -abi::EAGAIN,
            (0, Some(Answer::Broken)) => -5,
            (0, Some(_)) => -abi::EAVAIL,
            _ => found as isize,
        }
    })
}

unsafe extern "C" fn readerr(queue: *mut Fid, error: *mut CqError, _flags: u64) -> isize {
    let Some(Answer::Error(context)) = fake(|fake| answers(fake, queue).pop_front()) else {
        return -abi::EAGAIN;
    };
    // SAFETY: a place of the caller's, longer than that of this version.
    unsafe {
        (*error).context = context;
        (*error).err = 5;
        (*error).prov_errno = 77;
        (*error).later = [u64::MAX; _];
    }
    1
}

unsafe extern "C" fn words(
    _queue: *mut Fid,
    code: c_int,
    _data: *const c_void,
    _text: *mut c_char,
    _len: usize,
) -> *const c_char {
    assert_eq!(code, 77);
    c"the cable is out".as_ptr()
}

unsafe extern "C" fn endpoint(
    _domain: *mut Fid,
    _info: *mut Info,
    at: *mut *mut c_void,
    _context: *mut c_void,
) -> c_int {
    let messages = match fake(|fake| fake.is_whole) {
        true => &MESSAGES,
        false => &SHORT,
    };
    let object = FidEp {
        fid: fid(3, &OF_ENDPOINT),
        ops: null(),
        cm: &raw const NAMES.0,
        msg: &raw const messages.0,
        rma: null(),
        tagged: null(),
        atomic: null(),
        collective: null(),
    };
    // SAFETY: a place of the caller's.
    unsafe { *at = boxed(object).cast() };
    0
}

static NAMES: Tables<CmOps> = Tables(CmOps {
    size: size_of::<CmOps>(),
    setname: null(),
    getname: Some(getname),
});

unsafe extern "C" fn getname(_endpoint: *mut Fid, name: *mut c_void, len: *mut usize) -> c_int {
    // SAFETY: room of the caller's, of more than a byte.
    unsafe { (*name.cast::<u8>(), *len) = (7, 1) };
    0
}

const fn messages(size: usize) -> Tables<MsgOps> {
    Tables(MsgOps {
        size,
        recv: Some(recv),
        recvv: null(),
        recvmsg: null(),
        send: Some(send),
        sendv: null(),
        sendmsg: null(),
        inject: Some(inject),
    })
}

static MESSAGES: Tables<MsgOps> = messages(size_of::<MsgOps>());
/// Of an older provider, without the last function.
static SHORT: Tables<MsgOps> = messages(size_of::<MsgOps>() - size_of::<usize>());

unsafe extern "C" fn recv(
    _endpoint: *mut Fid,
    at: *mut c_void,
    bytes: usize,
    descriptor: *mut c_void,
    _from: u64,
    context: *mut c_void,
) -> isize {
    fake(|fake| {
        if fake.posted.len() == fake.providers[0].size {
            return -abi::EAGAIN;
        }
        fake.posted.push_back(Operation {
            at: at.cast(),
            bytes,
            descriptor,
            context,
        });
        0
    })
}

/// Its own number, and some next ones.
fn is_peer(peer: u64) -> bool {
    (7..=10).contains(&peer)
}

unsafe extern "C" fn send(
    _endpoint: *mut Fid,
    at: *mut c_void,
    bytes: usize,
    descriptor: *mut c_void,
    peer: u64,
    context: *mut c_void,
) -> isize {
    assert!(is_peer(peer));
    fake(|fake| {
        if fake.full > 0 {
            fake.full -= 1;
            return -abi::EAGAIN;
        }
        if fake.refuses == 0 {
            fake.sends.push(Operation {
                at: at.cast(),
                bytes,
                descriptor,
                context,
            });
        }
        fake.refuses
    })
}

unsafe extern "C" fn inject(
    _endpoint: *mut Fid,
    at: *const c_void,
    bytes: usize,
    peer: u64,
) -> isize {
    assert!(is_peer(peer));
    fake(|fake| {
        if fake.full > 0 {
            fake.full -= 1;
            return -abi::EAGAIN;
        }
        let [prefix, tx] = fake.prefixes();
        fake.injected += 1;
        assert!(bytes - tx <= fake.providers[0].inject, "{bytes} bytes");
        let Some(to) = fake.posted.pop_front() else {
            return 0;
        };
        // SAFETY: bytes of the caller's, and a buffer that it has posted.
        unsafe {
            to.at
                .add(prefix)
                .copy_from(at.cast::<u8>().add(tx), bytes - tx)
        };
        fake.came
            .push_back(Answer::Done(to.context, prefix + bytes - tx));
        0
    })
}
