//! Objects that the library makes, each closed when it is dropped.

use super::abi::{
    self, AvAttr, AvOps, CmOps, CqAttr, CqEntry, CqError, CqOps, DomainOps, FabricOps, Fid, FidAv,
    FidCq, FidDomain, FidEp, FidFabric, FidMr, MrOps, MsgOps, Ops,
};
use super::error::FabricError;
use super::library::text;
use super::offer::Offer;
use core::ffi::c_int;
use core::ptr::{NonNull, null, null_mut};
use core::sync::atomic::{AtomicBool, Ordering};
use rustix::fd::RawFd;

/// A function of a provider's table, if the provider has it: tables of older ones are shorter.
macro_rules! of_table {
    ($table:expr, $kind:ident, $member:ident) => {{
        let table: *const $kind = $table;
        let end = core::mem::offset_of!($kind, $member) + size_of::<usize>();
        // SAFETY: a table of the provider's, which stays; its size says whether it has the member.
        unsafe {
            match table.is_null() || (*table).size < end {
                true => None,
                false => (*table).$member,
            }
        }
    }};
}

/// An object of the library's, whose first member is a [`Fid`].
struct Object<T>(NonNull<T>);

// SAFETY: any thread may use an object; that only one does at a time is a promise of the clients
// of the functions that use it.
unsafe impl<T> Send for Object<T> {}

impl<T> Object<T> {
    fn fid(&self) -> *mut Fid {
        self.0.as_ptr().cast()
    }

    /// The table of all objects.
    fn ops(&self) -> *const Ops {
        // SAFETY: the object is there until `self` is dropped.
        unsafe { (*self.fid()).ops }
    }

    fn bind<U>(&self, offer: &Offer, to: &Object<U>, flags: u64) -> Result<(), FabricError> {
        let bind = has(offer, "fi_bind", of_table!(self.ops(), Ops, bind))?;
        // SAFETY: both objects are there.
        done(offer, "fi_bind", unsafe {
            bind(self.fid(), to.fid(), flags)
        })
    }
}

/// Whether an object of this process could not be closed, and may still use what it was given.
static STAYS_OPEN: AtomicBool = AtomicBool::new(false);

/// Whether a provider may use memory that it was given, though its objects are dropped.
pub(crate) fn may_use_memory() -> bool {
    STAYS_OPEN.load(Ordering::Acquire)
}

impl<T> Drop for Object<T> {
    fn drop(&mut self) {
        // SAFETY: it is closed once, before the objects that it was made of: owners have them
        // behind it.
        let closed = of_table!(self.ops(), Ops, close).map(|close| unsafe { close(self.fid()) });
        if closed != Some(0) {
            STAYS_OPEN.store(true, Ordering::Release);
        }
    }
}

/// The function, or the error of a provider without it.
fn has<F>(offer: &Offer, call: &'static str, function: Option<F>) -> Result<F, FabricError> {
    function.ok_or_else(|| offer.failed(call, abi::ENOSYS.into()))
}

fn done(offer: &Offer, call: &'static str, code: c_int) -> Result<(), FabricError> {
    match code {
        0 => Ok(()),
        code => Err(offer.failed(call, code.into())),
    }
}

/// Makes an object by a call that fills its place.
fn made<T>(
    offer: &Offer,
    call: &'static str,
    make: impl FnOnce(*mut *mut T) -> c_int,
) -> Result<Object<T>, FabricError> {
    let mut at = null_mut();
    done(offer, call, make(&raw mut at))?;
    let at = NonNull::new(at).ok_or_else(|| offer.failed(call, libc::ENOMEM.into()))?;
    Ok(Object(at))
}

/// Bytes of the longest address of a provider.
const LONGEST_NAME: usize = 256;

/// An address where structures of the system may lie.
#[repr(align(16))]
struct Aligned([[u8; 8]; LONGEST_NAME / 8]);

/// The domain of an offer, with its fabric.
pub(crate) struct Domain {
    domain: Object<FidDomain>,
    fabric: Object<FidFabric>,
    offer: Offer,
}

impl Domain {
    pub(crate) fn open(offer: Offer) -> Result<Self, FabricError> {
        let attributes = offer.info().fabric_attr;
        let call = offer.library().call.fabric;
        // SAFETY: attributes of the offer, and a place.
        let fabric = made(&offer, "fi_fabric", |at| unsafe {
            call(attributes, at, null_mut())
        })?;
        // SAFETY: the object is there.
        let ops = unsafe { (*fabric.0.as_ptr()).ops };
        let open = has(&offer, "fi_domain", of_table!(ops, FabricOps, domain))?;
        // SAFETY: the fabric and the offer are there, and the place is one.
        let domain = made(&offer, "fi_domain", |at: *mut *mut FidDomain| unsafe {
            open(fabric.fid(), offer.at(), at.cast(), null_mut())
        })?;
        Ok(Self {
            domain,
            fabric,
            offer,
        })
    }

    pub(crate) fn offer(&self) -> &Offer {
        &self.offer
    }

    fn ops(&self) -> *const DomainOps {
        // SAFETY: the object is there.
        unsafe { (*self.domain.0.as_ptr()).ops }
    }

    /// A queue of completions; with a descriptor that can be waited for, if it `waits`.
    pub(crate) fn queue(&self, entries: usize, waits: bool) -> Result<Queue, FabricError> {
        let open = of_table!(self.ops(), DomainOps, cq_open);
        let open = has(&self.offer, "fi_cq_open", open)?;
        let mut attributes = CqAttr {
            size: entries,
            flags: 0,
            format: abi::CQ_FORMAT_MSG,
            wait_obj: if waits { abi::WAIT_FD } else { abi::WAIT_NONE },
            signaling_vector: 0,
            wait_cond: 0,
            wait_set: null_mut(),
            later: [0; _],
        };
        let domain = self.domain.fid();
        // SAFETY: the domain is there, and the attributes and the place are.
        let queue = made(&self.offer, "fi_cq_open", |at: *mut *mut FidCq| unsafe {
            open(domain, &raw mut attributes, at.cast(), null_mut())
        })?;
        // SAFETY: the object is there.
        let ops = unsafe { (*queue.0.as_ptr()).ops };
        Ok(Queue {
            read: has(&self.offer, "fi_cq_read", of_table!(ops, CqOps, read))?,
            queue,
        })
    }

    /// Whether a thread may sleep at the descriptor of a queue until something comes.
    pub(crate) fn may_sleep(&self, queue: &Queue) -> bool {
        // SAFETY: the object is there.
        let ops = unsafe { (*self.fabric.0.as_ptr()).ops };
        let Some(trywait) = of_table!(ops, FabricOps, trywait) else {
            return true;
        };
        let mut one = queue.queue.fid();
        // SAFETY: the objects are there; it takes one of them.
        let code = unsafe { trywait(self.fabric.fid(), &raw mut one, 1) };
        // After another error nothing may wake the thread.
        code == 0 || code as isize == -(libc::ENOSYS as isize)
    }

    /// Registers memory for sends and receives.
    ///
    /// # Safety
    /// The memory stays longer than what is returned.
    pub(crate) unsafe fn register(
        &self,
        memory: NonNull<u8>,
        bytes: usize,
    ) -> Result<Region, FabricError> {
        // SAFETY: the object is there.
        let ops = unsafe { (*self.domain.0.as_ptr()).mr };
        let register = has(&self.offer, "fi_mr_reg", of_table!(ops, MrOps, reg))?;
        let (domain, memory) = (self.domain.fid(), memory.as_ptr().cast_const().cast());
        let access = abi::SEND | abi::RECV;
        // SAFETY: the caller promises the memory, and the place is one.
        let region = made(&self.offer, "fi_mr_reg", |at: *mut *mut FidMr| unsafe {
            register(
                domain,
                memory,
                bytes,
                access,
                0,
                0,
                0,
                at.cast(),
                null_mut(),
            )
        })?;
        Ok(Region(region))
    }

    /// A table of addresses of so many peers.
    pub(crate) fn addresses(&self, count: usize) -> Result<Addresses, FabricError> {
        let open = of_table!(self.ops(), DomainOps, av_open);
        let open = has(&self.offer, "fi_av_open", open)?;
        let mut attributes = AvAttr {
            kind: match self.offer.attributes().domain.av_type {
                abi::AV_UNSPEC => abi::AV_MAP,
                kind => kind,
            },
            rx_ctx_bits: 0,
            count,
            ep_per_node: 0,
            name: null(),
            map_addr: null_mut(),
            flags: 0,
            later: [0; _],
        };
        let domain = self.domain.fid();
        // SAFETY: the domain is there, and the attributes and the place are.
        let addresses = made(&self.offer, "fi_av_open", |at: *mut *mut FidAv| unsafe {
            open(domain, &raw mut attributes, at.cast(), null_mut())
        })?;
        Ok(Addresses(addresses))
    }

    /// Inserts the address of a peer; by what sends name it.
    pub(crate) fn insert(&self, addresses: &Addresses, address: &[u8]) -> Result<u64, FabricError> {
        // SAFETY: the object is there.
        let ops = unsafe { (*addresses.0.0.as_ptr()).ops };
        let insert = has(&self.offer, "fi_av_insert", of_table!(ops, AvOps, insert))?;
        let (mut peer, table) = (abi::ADDR_NOTAVAIL, addresses.0.fid());
        // The library takes as many bytes as the kind of address has, and expects it aligned.
        let mut padded = [[0_u8; 8]; LONGEST_NAME / 8];
        let place = padded.as_flattened_mut().get_mut(..address.len());
        let place = place.ok_or_else(|| self.offer.failed("fi_av_insert", libc::E2BIG.into()))?;
        place.copy_from_slice(address);
        let padded = Aligned(padded);
        // SAFETY: one address, with as much behind it as any has, and a place.
        let count = unsafe {
            insert(
                table,
                padded.0.as_ptr().cast(),
                1,
                &raw mut peer,
                0,
                null_mut(),
            )
        };
        match count == 1 && peer != abi::ADDR_NOTAVAIL {
            true => Ok(peer),
            false if count < 0 => Err(self.offer.failed("fi_av_insert", count.into())),
            false => Err(self.offer.failed("fi_av_insert", libc::EINVAL.into())),
        }
    }

    /// An endpoint with its queues and its table of addresses, enabled.
    pub(crate) fn endpoint(
        &self,
        sends: &Queue,
        receives: &Queue,
        addresses: &Addresses,
    ) -> Result<Endpoint, FabricError> {
        let offer = &self.offer;
        let open = has(
            offer,
            "fi_endpoint",
            of_table!(self.ops(), DomainOps, endpoint),
        )?;
        let domain = self.domain.fid();
        // SAFETY: the domain and the offer are there, and the place is one.
        let endpoint = made(offer, "fi_endpoint", |at: *mut *mut FidEp| unsafe {
            open(domain, offer.at(), at.cast(), null_mut())
        })?;
        endpoint.bind(offer, &addresses.0, 0)?;
        endpoint.bind(offer, &sends.queue, abi::SEND)?;
        endpoint.bind(offer, &receives.queue, abi::RECV)?;
        let control = of_table!(endpoint.ops(), Ops, control);
        let control = has(offer, "fi_enable", control)?;
        // SAFETY: the object is there; the command has no argument.
        done(offer, "fi_enable", unsafe {
            control(endpoint.fid(), abi::ENABLE, null_mut())
        })?;
        // Enabling may have changed them.
        // SAFETY: the object is there.
        let ops = unsafe { (*endpoint.0.as_ptr()).msg };
        Ok(Endpoint {
            send: has(offer, "fi_send", of_table!(ops, MsgOps, send))?,
            recv: has(offer, "fi_recv", of_table!(ops, MsgOps, recv))?,
            inject: has(offer, "fi_inject", of_table!(ops, MsgOps, inject))?,
            endpoint,
        })
    }

    /// The address of an endpoint.
    pub(crate) fn name(&self, endpoint: &Endpoint) -> Result<Vec<u8>, FabricError> {
        // SAFETY: the object is there.
        let ops = unsafe { (*endpoint.endpoint.0.as_ptr()).cm };
        let name = has(&self.offer, "fi_getname", of_table!(ops, CmOps, getname))?;
        let mut bytes = vec![0_u8; LONGEST_NAME];
        let (mut len, at) = (bytes.len(), bytes.as_mut_ptr().cast());
        // SAFETY: room for as many bytes as it says.
        done(&self.offer, "fi_getname", unsafe {
            name(endpoint.endpoint.fid(), at, &raw mut len)
        })?;
        bytes.truncate(len);
        Ok(bytes)
    }
}

/// Memory that is registered.
pub(crate) struct Region(Object<FidMr>);

impl Region {
    /// By what sends and receives name it.
    pub(crate) fn descriptor(&self) -> *mut core::ffi::c_void {
        // SAFETY: the object is there.
        unsafe { (*self.0.0.as_ptr()).mem_desc }
    }
}

/// A table of addresses.
pub(crate) struct Addresses(Object<FidAv>);

/// A queue of completions.
pub(crate) struct Queue {
    queue: Object<FidCq>,
    read: abi::Read,
}

/// What a look into a queue has found.
#[derive(Debug)]
pub(crate) enum Found {
    /// So many completions; none is a number, too.
    Completions(usize),
    /// An operation failed: its context, and the provider's words.
    Failed(usize, String),
    /// The queue says nothing of operations any more.
    Broken(String),
}

impl Queue {
    /// The descriptor that can be read while something has come.
    pub(crate) fn descriptor(&self, domain: &Domain) -> Result<RawFd, FabricError> {
        let offer = domain.offer();
        let control = has(
            offer,
            "fi_control",
            of_table!(self.queue.ops(), Ops, control),
        )?;
        let mut descriptor: RawFd = -1;
        // SAFETY: the queue is there, and the command fills a place for a descriptor.
        done(offer, "fi_control(FI_GETWAIT)", unsafe {
            control(self.queue.fid(), abi::GETWAIT, (&raw mut descriptor).cast())
        })?;
        match descriptor {
            0.. => Ok(descriptor),
            _ => Err(offer.failed("fi_control(FI_GETWAIT)", libc::EBADF.into())),
        }
    }

    /// Takes completions.
    #[inline]
    pub(crate) fn take(&self, entries: &mut [CqEntry], domain: &Domain) -> Found {
        let (at, count) = (entries.as_mut_ptr(), entries.len());
        // SAFETY: room for as many entries as it says, of the format that the queue was made with.
        match unsafe { (self.read)(self.queue.fid(), at, count) } {
            found @ 0.. => Found::Completions(count.min(found as usize)),
            code if code == -abi::EAGAIN => Found::Completions(0),
            code if code == -abi::EAVAIL => self.take_error(domain),
            code => {
                let words = domain.offer().failed("fi_cq_read", code as i64);
                Found::Broken(words.to_string())
            }
        }
    }

    #[cold]
    fn take_error(&self, domain: &Domain) -> Found {
        // SAFETY: the object is there.
        let ops = unsafe { (*self.queue.0.as_ptr()).ops };
        let Some(read) = of_table!(ops, CqOps, readerr) else {
            let words = "an operation failed, and the provider does not say which";
            return Found::Broken(words.into());
        };
        let mut error = CqError {
            context: null_mut(),
            flags: 0,
            len: 0,
            buf: null_mut(),
            data: 0,
            tag: 0,
            olen: 0,
            err: 0,
            prov_errno: 0,
            err_data: null_mut(),
            err_data_size: 0,
            later: [0; _],
        };
        let queue = self.queue.fid();
        // SAFETY: the queue is there, and the place has room for later versions.
        let count = unsafe { read(queue, &raw mut error, 0) };
        if count <= 0 {
            return Found::Completions(0);
        }
        let mut words = domain.offer().library().text(error.err.into());
        if let Some(strerror) = of_table!(ops, CqOps, strerror) {
            let (code, data) = (error.prov_errno, error.err_data);
            // SAFETY: what the provider has put into the error; the text is its own, and stays
            // for the call at least.
            let own = unsafe { text(strerror(queue, code, data, null_mut(), 0)) };
            words += &format!(" ({own}, {code})");
        }
        Found::Failed(error.context.addr(), words)
    }
}

/// An endpoint, enabled.
pub(crate) struct Endpoint {
    endpoint: Object<FidEp>,
    send: abi::Transfer,
    recv: abi::Transfer,
    inject: abi::Inject,
}

/// A part of registered memory, and the context of an operation on it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Buffer {
    pub(crate) at: *mut u8,
    pub(crate) bytes: usize,
    /// That of its region; null where memory needs none.
    pub(crate) descriptor: *mut core::ffi::c_void,
    /// Memory of 64 bytes that the provider may use until the operation has ended, and by which
    /// its completion names it.
    pub(crate) context: *mut u8,
}

impl Endpoint {
    /// Begins to send a buffer; 0, or the negative number of an error.
    ///
    /// # Safety
    /// The buffer is not written, and its context not used, until the completion was taken.
    #[inline]
    pub(crate) unsafe fn send(&self, buffer: &Buffer, peer: u64) -> isize {
        let Buffer {
            at,
            bytes,
            descriptor,
            context,
        } = *buffer;
        // SAFETY: the caller's promise.
        unsafe {
            (self.send)(
                self.endpoint.fid(),
                at.cast(),
                bytes,
                descriptor,
                peer,
                context.cast(),
            )
        }
    }

    /// Posts a buffer for what comes; 0, or the negative number of an error.
    ///
    /// # Safety
    /// Neither the buffer nor its context is used until the completion was taken.
    #[inline]
    pub(crate) unsafe fn recv(&self, buffer: &Buffer) -> isize {
        let Buffer {
            at,
            bytes,
            descriptor,
            context,
        } = *buffer;
        // SAFETY: the caller's promise.
        unsafe {
            let from_any = u64::MAX;
            (self.recv)(
                self.endpoint.fid(),
                at.cast(),
                bytes,
                descriptor,
                from_any,
                context.cast(),
            )
        }
    }

    /// Sends bytes that are free again when the call returns; 0, or an error's negative number.
    ///
    /// There is no completion.
    #[inline]
    pub(crate) fn inject(&self, bytes: &mut [u8], peer: u64) -> isize {
        // SAFETY: the bytes are read during the call alone, and a prefix is written to.
        unsafe {
            (self.inject)(
                self.endpoint.fid(),
                bytes.as_mut_ptr().cast(),
                bytes.len(),
                peer,
            )
        }
    }
}
