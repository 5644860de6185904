//! What the library's providers offer.

use super::abi::{self, DomainAttr, EpAttr, FabricAttr, Info, RxAttr, TxAttr};
use super::error::{FabricError, Version};
use super::library::{Library, text};
use core::ffi::c_int;
use core::net::IpAddr;
use core::ptr::NonNull;
use std::ffi::CString;

/// What a client wants of a provider, and what it is ready for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wish {
    /// The kind of endpoints, as a number of the library and in words.
    pub(crate) endpoint: (u32, &'static str),
    pub(crate) caps: u64,
    /// Demands that it meets.
    pub(crate) mode: u64,
    /// Demands on memory that it meets.
    pub(crate) mr_mode: c_int,
    /// Which calls come one after the other.
    pub(crate) threading: u32,
    /// What keeps its order.
    pub(crate) order: u64,
    /// Whether queues of the provider may overflow.
    pub(crate) resource_mgmt: u32,
    /// Whether the provider sends what was lost again.
    pub(crate) is_reliable: bool,
    /// The setting that chooses a provider.
    pub(crate) setting: &'static str,
}

/// A list of the library's.
struct List {
    library: Library,
    first: NonNull<Info>,
}

// SAFETY: the list is memory of the library's that nothing else refers to, and any thread may free
// it.
unsafe impl Send for List {}

impl Drop for List {
    fn drop(&mut self) {
        // SAFETY: the library made it, and it is freed once.
        unsafe { (self.library.call.freeinfo)(self.first.as_ptr()) };
    }
}

impl List {
    /// The first entry of a provider that is wanted, or the names of all.
    fn find(self, is_wanted: impl Fn(&str) -> bool) -> Result<Offer, Vec<String>> {
        let mut names = Vec::new();
        let mut next = Some(self.first);
        while let Some(at) = next {
            // SAFETY: of the list, which `self` keeps.
            let (entry, behind) = unsafe { (entry(at), at.as_ref().next) };
            next = NonNull::new(behind);
            let Some((provider, attributes)) = entry else {
                continue;
            };
            if is_wanted(&provider) {
                return Ok(Offer {
                    list: self,
                    at,
                    provider,
                    attributes,
                });
            }
            names.push(provider);
        }
        Err(names)
    }
}

/// What a provider offers: an interface with a kind of endpoints.
pub(crate) struct Offer {
    /// Keeps what `at` and the attributes point to.
    list: List,
    at: NonNull<Info>,
    provider: String,
    attributes: Attributes,
}

// SAFETY: as for the list.
unsafe impl Send for Offer {}

/// The attributes of an offer, as the library gave them.
#[derive(Clone, Copy)]
pub(crate) struct Attributes {
    pub(crate) tx: TxAttr,
    pub(crate) rx: RxAttr,
    pub(crate) endpoint: EpAttr,
    pub(crate) domain: DomainAttr,
    pub(super) fabric: FabricAttr,
}

/// The provider of an entry of a list, and its attributes; `None` if one is missing.
///
/// # Safety
/// It is an entry of a list that is there.
unsafe fn entry(at: NonNull<Info>) -> Option<(String, Attributes)> {
    // SAFETY: of a list; what is not null points to a structure of the library's, of this version
    // at least, which stays as long as its entry, and so does the name.
    unsafe {
        let info = at.as_ref();
        let attributes = Attributes {
            tx: *info.tx_attr.as_ref()?,
            rx: *info.rx_attr.as_ref()?,
            endpoint: *info.ep_attr.as_ref()?,
            domain: *info.domain_attr.as_ref()?,
            fabric: *info.fabric_attr.as_ref()?,
        };
        Some((text(attributes.fabric.prov_name), attributes))
    }
}

impl Library {
    /// The list of what fits; `None` if nothing does.
    fn list(&self, wish: &Wish, source: Option<IpAddr>) -> Result<Option<List>, FabricError> {
        let failed = |call, code: c_int| FabricError::Call {
            call,
            provider: "(any)".to_owned(),
            code: code.into(),
            text: self.text(code.into()),
        };
        // SAFETY: null makes an empty entry.
        let hints = NonNull::new(unsafe { (self.call.dupinfo)(core::ptr::null()) });
        let first = hints.ok_or_else(|| failed("fi_dupinfo", libc::ENOMEM))?;
        let mut hints = List {
            library: self.clone(),
            first,
        };
        // SAFETY: the entry was just made, with its attributes, and nothing else refers to them.
        unsafe {
            let info = hints.first.as_mut();
            (info.caps, info.mode) = (wish.caps, wish.mode);
            if let Some(endpoint) = info.ep_attr.as_mut() {
                endpoint.endpoint = wish.endpoint.0;
            }
            if let Some(domain) = info.domain_attr.as_mut() {
                (domain.mr_mode, domain.threading) = (wish.mr_mode, wish.threading);
                domain.resource_mgmt = wish.resource_mgmt;
            }
            if let (Some(tx), Some(rx)) = (info.tx_attr.as_mut(), info.rx_attr.as_mut()) {
                (tx.msg_order, rx.msg_order) = (wish.order, wish.order);
            }
        }
        let node = source.and_then(|address| CString::new(address.to_string()).ok());
        let flags = match node {
            Some(_) => abi::SOURCE | abi::NUMERICHOST,
            None => 0,
        };
        let node = node
            .as_ref()
            .map_or(core::ptr::null(), |node| node.as_ptr());
        let (hints, mut found) = (hints.first.as_ptr(), core::ptr::null_mut());
        // SAFETY: a text, hints and a place that are valid during the call.
        let code = unsafe {
            let service = core::ptr::null();
            (self.call.getinfo)(abi::API, node, service, flags, hints, &raw mut found)
        };
        match NonNull::new(found) {
            Some(first) if code == 0 => Ok(Some(List {
                library: self.clone(),
                first,
            })),
            _ if code == 0 || code == -abi::ENODATA => Ok(None),
            _ => Err(failed("fi_getinfo", code)),
        }
    }

    /// The providers that have what is wanted, in the order in which the library lists them.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn providers(&self, wish: &Wish) -> Result<Vec<String>, FabricError> {
        match self.list(wish, None)?.map(|list| list.find(|_| false)) {
            Some(Err(mut names)) => {
                names.dedup();
                Ok(names)
            }
            _ => Err(self.no_provider(wish)),
        }
    }

    pub(crate) fn no_provider(&self, wish: &Wish) -> FabricError {
        FabricError::NoProvider {
            library: self.name().to_owned(),
            version: self.version(),
            endpoints: wish.endpoint.1,
        }
    }

    /// The first offer of a provider, of the one of this name if there is a name, from an address
    /// of this host if its addresses are those of the Internet.
    ///
    /// # Errors
    /// No provider offers such endpoints, or not the one of this name, or not from there.
    pub(crate) fn offer(
        &self,
        wish: &Wish,
        provider: Option<&str>,
        source: Option<IpAddr>,
    ) -> Result<Offer, FabricError> {
        let Some(list) = self.list(wish, None)? else {
            return Err(self.no_provider(wish));
        };
        match list.find(|name| provider.is_none_or(|wanted| wanted == name)) {
            Ok(offer) => offer.at_source(wish, source),
            Err(mut names) => {
                names.dedup();
                Err(FabricError::UnknownProvider {
                    library: self.name().to_owned(),
                    version: self.version(),
                    endpoints: wish.endpoint.1,
                    wanted: provider.unwrap_or_default().to_owned(),
                    offered: names.join(", "),
                    setting: wish.setting,
                })
            }
        }
    }
}

impl Offer {
    /// The same provider's offer from an address of this host.
    fn at_source(self, wish: &Wish, source: Option<IpAddr>) -> Result<Self, FabricError> {
        let Some(address) = source.filter(|_| super::is_internet(self.info().addr_format)) else {
            return Ok(self);
        };
        let Self { list, provider, .. } = self;
        let library = list.library.clone();
        drop(list);
        let of_address = library.list(wish, source)?;
        let found = of_address.and_then(|list| list.find(|name| name == provider).ok());
        found.ok_or(FabricError::NoInterface {
            provider,
            version: library.version(),
            address,
        })
    }

    pub(super) fn info(&self) -> &Info {
        // SAFETY: of the list, which nothing changes.
        unsafe { self.at.as_ref() }
    }

    /// The format of its addresses, a number of the library's.
    pub(crate) fn format(&self) -> u32 {
        self.info().addr_format
    }

    /// As the library's calls take it, which do not change it.
    pub(super) fn at(&self) -> *mut Info {
        self.at.as_ptr()
    }

    pub(crate) fn library(&self) -> &Library {
        &self.list.library
    }

    pub(crate) fn attributes(&self) -> &Attributes {
        &self.attributes
    }

    /// Modes of an offer: of sends, and of receives.
    ///
    /// A mode that the offer has and neither direction is one of both.
    pub(crate) fn modes(&self) -> [u64; 2] {
        let Attributes { tx, rx, .. } = &self.attributes;
        let of_both = self.info().mode & !(tx.mode | rx.mode);
        [tx.mode | of_both, rx.mode | of_both]
    }

    pub(crate) fn provider(&self) -> &str {
        &self.provider
    }

    /// The version of the provider.
    pub(crate) fn version(&self) -> Version {
        Version(self.attributes.fabric.prov_version)
    }

    /// The error of a provider that demands something else, or offers too little.
    pub(crate) fn unfit(&self, wish: &Wish, what: String) -> FabricError {
        FabricError::Unfit {
            provider: self.provider.clone(),
            version: self.library().version(),
            what,
            setting: wish.setting,
        }
    }

    /// The error of a call.
    pub(super) fn failed(&self, call: &'static str, code: i64) -> FabricError {
        FabricError::Call {
            call,
            provider: self.provider.clone(),
            code,
            text: self.library().text(code),
        }
    }
}
