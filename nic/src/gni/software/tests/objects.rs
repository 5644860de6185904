//! Interfaces, registrations, endpoints.

use super::{BUFFERS, FaultRules, OURS, Pair, address, config, data, file, memory, open, read};
use crate::gni::software::{Software, SoftwareConfig};
use crate::gni::{
    Access, Credentials, Gni, GniError, MemHandle, NicAddress, Operation, RemotePlace,
};
use argonet_base::JobRank;
use argonet_segment::{Directory, OwnSegment, PageKind, Resolver, SegmentFile};
use core::ptr::NonNull;
use rustix::fd::AsFd;

fn new(
    file: &rustix::fd::OwnedFd,
    config: SoftwareConfig,
    address: NicAddress,
    credentials: Credentials,
) -> Result<Software, GniError> {
    let rules = FaultRules::default();
    Software::new(file.as_fd(), config, address, credentials, None, rules)
}

#[test]
fn those_with_other_credentials_refuse_each_other() {
    let file = file();
    let one = open(&file, config(3), 0, FaultRules::default());
    let queue = one.create_queue(4).unwrap();
    let to = |rank| one.create_endpoint(&queue, address(rank), data(rank));
    assert!(
        matches!(to(1), Err(GniError::Busy { .. })),
        "it was not opened"
    );
    let post = one.post_datagram(Some(address(1)), 1, b"x");
    assert!(matches!(post, Err(GniError::Busy { .. })));
    let other = Credentials {
        cookie: OURS.cookie + 1,
        ..OURS
    };
    let two = new(&file, config(3), address(1), other).unwrap();
    let third = Credentials {
        ptag: OURS.ptag + 1,
        ..OURS
    };
    let three = new(&file, config(3), address(2), third).unwrap();
    for rank in [1, 2, 3, u32::MAX] {
        assert!(matches!(to(rank), Err(GniError::BadPeer { .. })));
        let post = one.post_datagram(Some(address(rank)), 1, b"x");
        assert!(matches!(post, Err(GniError::BadPeer { .. })));
    }
    assert!(two.next_datagram().is_none() && three.next_datagram().is_none());
    to(0).unwrap();
}

#[test]
fn an_interface_is_one_of_its_file() {
    let file = file();
    let one = open(&file, config(2), 0, FaultRules::default());
    assert_eq!(one.address(), address(0));
    let again = new(&file, config(2), address(0), OURS);
    assert!(matches!(again, Err(GniError::Invalid { .. })));
    assert!(matches!(
        new(&file, config(2), address(2), OURS),
        Err(GniError::BadPeer { .. })
    ));
    let second = NicAddress {
        nic: 1,
        ..address(1)
    };
    assert!(matches!(
        new(&file, config(2), second, OURS),
        Err(GniError::BadPeer { .. })
    ));
    let longer = SoftwareConfig {
        buffer_bytes: 2 * BUFFERS,
        ..config(2)
    };
    assert!(matches!(
        new(&file, longer, address(1), OURS),
        Err(GniError::WrongFile { .. })
    ));
    for bad in [
        SoftwareConfig {
            ranks: 0,
            ..config(2)
        },
        SoftwareConfig {
            nics: 0,
            ..config(2)
        },
        SoftwareConfig {
            ranks: 1 << 17,
            ..config(2)
        },
        SoftwareConfig {
            queues: 0,
            ..config(2)
        },
        SoftwareConfig {
            queue_events: 0,
            ..config(2)
        },
        SoftwareConfig {
            queue_events: u32::MAX,
            ..config(2)
        },
        SoftwareConfig {
            registrations: 0,
            ..config(2)
        },
        SoftwareConfig {
            wildcards: u32::MAX,
            ..config(2)
        },
    ] {
        assert!(matches!(
            new(&file, bad, address(1), OURS),
            Err(GniError::Invalid { .. })
        ));
    }
    let large = SoftwareConfig {
        buffer_bytes: 1 << 60,
        ..config(2)
    };
    assert!(matches!(
        new(&file, large, address(1), OURS),
        Err(GniError::WrongFile { .. })
    ));
    new(&file, config(2), address(1), OURS).unwrap();
}

#[test]
fn ranks_have_several_interfaces() {
    let file = file();
    let sizes = SoftwareConfig {
        nics: 2,
        first: JobRank(10),
        ..config(2)
    };
    let mut nics = Vec::new();
    for rank in [10, 11] {
        for nic in 0..2 {
            let address = NicAddress {
                rank: JobRank(rank),
                nic,
            };
            nics.push(new(&file, sizes, address, OURS).unwrap());
        }
    }
    for nic in &nics {
        nic.post_datagram(None, 1, &[nic.address().nic as u8])
            .unwrap();
    }
    let to = nics[3].address();
    nics[1].post_datagram(Some(to), 2, b"bound").unwrap();
    let exchanged = nics[3].next_datagram().unwrap();
    assert_eq!(
        (exchanged.peer, exchanged.data()),
        (nics[1].address(), &b"bound"[..])
    );
    let exchanged = nics[1].next_datagram().unwrap();
    assert_eq!((exchanged.peer, exchanged.data()), (to, &[1][..]));
    assert!(nics.iter().all(|nic| nic.next_datagram().is_none()));
}

#[test]
fn registrations_grow_in_place() {
    let pair = Pair::closed(8, true, FaultRules::default());
    let nic = &pair.b.nic;
    let register = |index, at, len| {
        // SAFETY: as in `register`.
        unsafe { nic.register(index, memory(nic, at), len, Access::ReadWrite, None) }
    };
    let handle = register(Some((3, 99)), 4096, 100).unwrap();
    assert_eq!((handle.index, handle.key, handle.of), (3, 99, address(1)));
    let mut put = pair.a.post(&pair.b, Operation::Put, 0, 0, 200);
    put.remote = RemotePlace { handle, offset: 0 };
    assert!(matches!(pair.a.fma(&put), Err(GniError::OutOfRange { .. })));
    assert_eq!(register(Some((3, 99)), 4096, 200).unwrap(), handle);
    pair.a.fma(&put).unwrap();
    // Shorter, or elsewhere.
    for (at, len) in [(4096, 100), (4000, 300)] {
        assert!(matches!(
            register(Some((3, 99)), at, len),
            Err(GniError::Invalid { .. })
        ));
    }
    let other = register(Some((3, 100)), 4096, 300).unwrap();
    assert!(matches!(pair.a.fma(&put), Err(GniError::BadHandle { .. })));
    assert!(matches!(
        nic.deregister(handle),
        Err(GniError::BadHandle { .. })
    ));
    put.remote.handle = other;
    pair.a.fma(&put).unwrap();
    nic.deregister(other).unwrap();
    assert!(matches!(
        nic.deregister(other),
        Err(GniError::BadHandle { .. })
    ));
    assert!(matches!(
        register(Some((3, 0)), 0, 8),
        Err(GniError::Invalid { .. })
    ));
    assert!(matches!(
        register(Some((8, 1)), 0, 8),
        Err(GniError::NoSpace { .. })
    ));
    let limit = nic.limits().registrations;
    let handles: Vec<MemHandle> = (1..limit).map(|_| register(None, 0, 8).unwrap()).collect();
    assert!(handles.iter().all(|handle| handle.key != 0));
    assert!(matches!(
        register(None, 0, 8),
        Err(GniError::NoSpace { .. })
    ));
    nic.deregister(handles[2]).unwrap();
    assert_eq!(register(None, 0, 8).unwrap().index, handles[2].index);
    let foreign = MemHandle {
        of: address(0),
        ..handles[3]
    };
    assert!(matches!(
        nic.deregister(foreign),
        Err(GniError::BadHandle { .. })
    ));
}

#[test]
fn an_interface_that_has_gone_is_not_reached() {
    let pair = Pair::closed(8, true, FaultRules::default());
    let Pair { a, b } = pair;
    let put = a.post(&b, Operation::Put, 0, 0, 8);
    a.fma(&put).unwrap();
    drop(b);
    assert!(matches!(a.fma(&put), Err(GniError::BadHandle { .. })));
}

#[test]
fn memory_that_is_not_shared_is_not_registered() {
    let pair = Pair::closed(8, true, FaultRules::default());
    let nic = &pair.b.nic;
    let mut here = [0_u8; 64];
    let places = [
        (NonNull::from(&mut here).cast(), 64),
        (memory(nic, BUFFERS - 8), 9),
        (memory(nic, 0), u64::MAX),
        (memory(&pair.a.nic, 0), 8),
    ];
    for (place, len) in places {
        // SAFETY: it is refused.
        let result = unsafe { nic.register(None, place, len, Access::ReadWrite, None) };
        assert!(matches!(result, Err(GniError::NotShared { .. })));
    }
    // SAFETY: it is refused.
    let result = unsafe {
        nic.register(
            None,
            memory(nic, 0),
            8,
            Access::ReadWrite,
            Some(&pair.a.queue),
        )
    };
    assert!(matches!(result, Err(GniError::Invalid { .. })));
    let foreign = nic.create_endpoint(&pair.a.queue, address(0), data(0));
    assert!(matches!(foreign, Err(GniError::Invalid { .. })));
}

#[test]
fn segments_are_reached_as_buffers_are() {
    let stride = 1 << 20;
    let segment = SegmentFile::create(2, stride, PageKind::Normal).unwrap();
    let fd = segment.as_fd().try_clone_to_owned().unwrap();
    let other = SegmentFile::from_fd(fd, 2, stride, PageKind::Normal).unwrap();
    let directories = [
        Directory::new(segment, JobRank(0)).unwrap(),
        Directory::new(other, JobRank(1)).unwrap(),
    ];
    let file = file();
    let open = |rank: u32| {
        let resolver = Resolver::new(directories[rank as usize].clone());
        let rules = FaultRules::default();
        Software::new(
            file.as_fd(),
            config(2),
            address(rank),
            OURS,
            Some(resolver),
            rules,
        )
        .unwrap()
    };
    let (a, b) = (open(0), open(1));
    let own = OwnSegment::attach(&directories[1], 8192).unwrap();
    let (rank, offset) = (own.rank(), argonet_base::SegmentOffset(4096));
    let place = directories[1].resolve(rank, offset, 4096).unwrap();
    // SAFETY: the segment stays mapped, and the test touches it by `bulk` only.
    let handle = unsafe { b.register(None, place, 4096, Access::ReadWrite, None) }.unwrap();
    let queue = a.create_queue(8).unwrap();
    let endpoint = a.create_endpoint(&queue, address(1), data(1)).unwrap();
    super::write(&a, 0, b"segments");
    let post = crate::gni::Post {
        operation: Operation::Put,
        local: memory(&a, 0),
        remote: RemotePlace {
            handle,
            offset: 4088,
        },
        len_bytes: 8,
        id: 1,
        remote_event: false,
        fence: false,
    };
    // SAFETY: local memory is in buffers.
    unsafe { a.post_fma(&endpoint, &post) }.unwrap();
    let mut bytes = [0; 8];
    // SAFETY: within the segment.
    unsafe { argonet_segment::bulk::copy(bytes.as_mut_ptr(), place.as_ptr().add(4088), 8) };
    assert_eq!(&bytes, b"segments");
    let get = crate::gni::Post {
        operation: Operation::Get,
        local: memory(&a, 64),
        ..post
    };
    // SAFETY: as above.
    unsafe { a.post_rdma(&endpoint, &get, &[]) }.unwrap();
    assert_eq!(read(&a, 64, 8), b"segments");
}
