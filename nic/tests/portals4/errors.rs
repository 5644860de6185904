//! Errors of the binding.

use super::group::{END, Member, exactly, part, to};
use argonet_base::JobRank;
use argonet_nic::portals::{
    Ack, AtomicKind, AtomicOp, Counter, Descriptor, Entry, Events, Managed, NicError, PortalIndex,
    PortalOptions, Portals, Position, Queue, Target,
};

pub(crate) const NAMES: [&str; 1] = ["missing_objects_and_wrong_arguments_are_refused"];

macro_rules! refuses {
    ($call:expr, $error:ident) => {{
        let result = $call;
        assert!(matches!(result, Err(NicError::$error { .. })), "{result:?}");
        let text = result
            .err()
            .map(|error| error.to_string())
            .unwrap_or_default();
        assert!(text.contains("rank"), "{text}");
    }};
}

pub(crate) fn run<N: Portals>(_: &str, m: &Member<N>) {
    let nic = &m.nic;
    let queue = nic.queue_alloc(8).expect("queue");
    let other = nic.queue_alloc(8).expect("queue");
    let portal = nic
        .portal_alloc(PortalOptions::default(), Some(queue), None)
        .expect("portal");
    let bare = nic
        .portal_alloc(PortalOptions::default(), None, None)
        .expect("portal");
    let flow = PortalOptions { flow_control: true };
    refuses!(nic.portal_alloc(flow, None, None), Invalid);
    refuses!(nic.portal_alloc(flow, Some(queue), Some(portal)), InUse);
    let beyond = PortalIndex(nic.limits().portals);
    refuses!(nic.portal_alloc(flow, Some(queue), Some(beyond)), BadPortal);
    refuses!(nic.portal_free(beyond), BadPortal);
    refuses!(nic.portal_enable(beyond, true), BadPortal);
    refuses!(nic.queue_alloc(0), Invalid);
    refuses!(nic.queue_free(queue), InUse);
    refuses!(nic.queue_get(Queue::from_bits(u64::MAX)), BadHandle);
    refuses!(nic.counter_get(Counter::from_bits(9)), BadHandle);

    let attach = |portal, position, entry| {
        // SAFETY: the memory outlives the interface and is touched by `bulk` only.
        unsafe { nic.attach(portal, position, exactly(1), m.memory, 64, entry) }
    };
    let (tail, open) = (Position::Tail, Entry::OPEN);
    let start = Events {
        start: true,
        end: true,
    };
    let with = |threshold| Entry { threshold, ..open };
    refuses!(attach(portal, Position::Head, open), Unsupported);
    refuses!(
        attach(
            portal,
            tail,
            Entry {
                events: start,
                ..open
            }
        ),
        Unsupported
    );
    refuses!(
        attach(
            portal,
            tail,
            Entry {
                ack_disable: true,
                ..open
            }
        ),
        Unsupported
    );
    refuses!(attach(portal, tail, with(Some(2))), Unsupported);
    refuses!(attach(portal, tail, with(Some(0))), Invalid);
    refuses!(attach(bare, tail, with(Some(1))), Unsupported);
    let managed = Managed::Local { min_free_bytes: 1 };
    refuses!(attach(bare, tail, Entry { managed, ..open }), Unsupported);
    let elsewhere = Some(other);
    refuses!(
        attach(
            portal,
            tail,
            Entry {
                queue: elsewhere,
                ..open
            }
        ),
        Unsupported
    );
    let nothing = Entry {
        puts: false,
        gets: false,
        ..open
    };
    refuses!(attach(portal, tail, nothing), Invalid);
    let entry = attach(portal, tail, open).expect("attach");
    refuses!(nic.portal_free(portal), InUse);
    nic.unlink(entry).expect("unlink");

    // SAFETY: as above.
    let bind = |descriptor| unsafe { nic.bind(m.memory, 64, descriptor) };
    let silent = Descriptor::SILENT;
    refuses!(
        bind(Descriptor {
            threshold: Some(3),
            ..silent
        }),
        Unsupported
    );
    refuses!(
        bind(Descriptor {
            events: start,
            ..silent
        }),
        Unsupported
    );
    let mute = bind(silent).expect("bind");
    let reporting = Descriptor {
        events: END,
        queue: Some(queue),
        ..silent
    };
    let reporting = bind(reporting).expect("bind");
    let own = Target {
        rank: nic.rank(),
        ..to(portal, 1, 0)
    };
    let far = Target {
        rank: JobRank(2),
        ..own
    };
    refuses!(nic.put(mute, Ack::None, far, 0), BadRank);
    refuses!(nic.put(mute, Ack::Event, own, 0), Invalid);
    refuses!(nic.put(reporting, Ack::Count, own, 0), Invalid);
    refuses!(nic.get_region(reporting, part(60, 5), own), OutOfRange);
    refuses!(
        nic.get(
            reporting,
            Target {
                portal: beyond,
                ..own
            }
        ),
        BadPortal
    );
    let swap = |op, kind, len| nic.atomic(reporting, part(0, len), Ack::None, own, 0, op, kind);
    refuses!(swap(AtomicOp::Swap, AtomicKind::U64, 8), Unsupported);
    refuses!(swap(AtomicOp::CompareSwap, AtomicKind::U64, 8), Invalid);
    refuses!(swap(AtomicOp::Or, AtomicKind::F64, 8), Invalid);
    refuses!(swap(AtomicOp::Sum, AtomicKind::U64, 7), Invalid);
    nic.release(mute).expect("release");
    refuses!(nic.release(mute), BadHandle);
    refuses!(nic.put(mute, Ack::None, own, 0), BadHandle);
    nic.release(reporting).expect("release");
    nic.queue_free(other).expect("queue");
}
