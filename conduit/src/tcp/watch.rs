//! The sockets at which the thread waits that serves a rank which makes no call, each until it has
//! something once.

use super::connector::Connector;
use super::readiness::{CONNECTOR, WAKE};
use super::socket::Socket;
use crate::channel::rail::{RailId, Ready, Server};
use core::mem::MaybeUninit;
use rustix::event::{EventfdFlags, epoll, eventfd};
use rustix::fd::{BorrowedFd, OwnedFd};
use std::io;
use std::sync::Arc;

/// Those sockets.
pub(super) struct Watch {
    epoll: OwnedFd,
    /// Can be read when the waits are to end.
    end: OwnedFd,
    connector: Arc<dyn Connector>,
}

fn once() -> epoll::EventFlags {
    epoll::EventFlags::IN | epoll::EventFlags::ONESHOT
}

impl Watch {
    pub(super) fn new(connector: Arc<dyn Connector>) -> io::Result<Self> {
        let watch = Self {
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            end: eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?,
            connector,
        };
        let mark = epoll::EventData::new_u64;
        epoll::add(&watch.epoll, &watch.end, mark(WAKE), epoll::EventFlags::IN)?;
        if let Some(connector) = watch.connector.descriptor() {
            epoll::add(&watch.epoll, connector, mark(CONNECTOR), once())?;
        }
        Ok(watch)
    }

    /// Begins to wait at a socket.
    pub(super) fn add(&self, socket: BorrowedFd<'_>, mark: u64) -> io::Result<()> {
        let data = epoll::EventData::new_u64(mark);
        epoll::add(&self.epoll, socket, data, once())?;
        Ok(())
    }

    pub(super) fn remove(&self, socket: BorrowedFd<'_>) {
        let _ = epoll::delete(&self.epoll, socket);
    }

    fn wait_again(&self, descriptor: BorrowedFd<'_>, mark: u64) {
        let data = epoll::EventData::new_u64(mark);
        let _ = epoll::modify(&self.epoll, descriptor, data, once());
    }
}

impl Server<Socket> for Watch {
    fn wait(&self, found: &mut Ready) -> bool {
        let mut events = [const { MaybeUninit::uninit() }; Ready::ROOM];
        let events = epoll::wait(&self.epoll, &mut events, None);
        for event in events.map_or(&[][..], |(events, _)| &*events) {
            match event.data.u64() {
                WAKE => return false,
                CONNECTOR => found.add_made(),
                mark => {
                    found.add(RailId::from_word(mark));
                }
            }
        }
        true
    }

    fn again(&self, id: RailId, rail: &Socket) {
        self.wait_again(rail.descriptor(), id.to_word());
    }

    fn again_made(&self) {
        if let Some(connector) = self.connector.descriptor() {
            self.wait_again(connector, CONNECTOR);
        }
    }

    fn end(&self) {
        // Full means that it is signaled.
        let _ = rustix::io::write(&self.end, &1u64.to_ne_bytes());
    }
}
