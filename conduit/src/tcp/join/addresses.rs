//! Addresses as ranks publish them when the job starts.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

const V4: u8 = 4;
const V6: u8 = 6;

/// The first of these addresses that fit into so many bytes, as bytes.
#[must_use]
pub fn write_addresses(addresses: &[SocketAddr], most: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    for address in addresses {
        let mut one = Vec::new();
        match address.ip() {
            IpAddr::V4(ip) => {
                one.push(V4);
                one.extend(ip.octets());
            }
            IpAddr::V6(ip) => {
                one.push(V6);
                one.extend(ip.octets());
            }
        }
        one.extend(address.port().to_le_bytes());
        if bytes.len() + one.len() > most {
            break;
        }
        bytes.extend(one);
    }
    bytes
}

/// The addresses in bytes that [`write_addresses`] has written, up to the first invalid byte.
#[must_use]
pub fn read_addresses(mut bytes: &[u8]) -> Vec<SocketAddr> {
    let mut addresses = Vec::new();
    while let Some((address, rest)) = first(bytes) {
        addresses.push(address);
        bytes = rest;
    }
    addresses
}

fn first(bytes: &[u8]) -> Option<(SocketAddr, &[u8])> {
    let (kind, rest) = bytes.split_first()?;
    let (ip, rest): (IpAddr, _) = match *kind {
        V4 => {
            let (octets, rest) = rest.split_first_chunk::<4>()?;
            (Ipv4Addr::from(*octets).into(), rest)
        }
        V6 => {
            let (octets, rest) = rest.split_first_chunk::<16>()?;
            (Ipv6Addr::from(*octets).into(), rest)
        }
        _ => return None,
    };
    let (port, rest) = rest.split_first_chunk::<2>()?;
    Some((SocketAddr::new(ip, u16::from_le_bytes(*port)), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_written_up_to_the_room_and_read_back() {
        let all: Vec<SocketAddr> = ["10.0.0.1:40000", "[fe80::7]:65535", "127.0.0.1:1"]
            .map(|text| text.parse().unwrap())
            .to_vec();
        assert_eq!(read_addresses(&write_addresses(&all, 192)), all);
        assert_eq!(read_addresses(&write_addresses(&all, 32)), all[..2]);
        assert_eq!(write_addresses(&all, 6), []);
    }

    #[test]
    fn an_invalid_address_ends_the_list() {
        let good = write_addresses(&["10.0.0.1:7".parse().unwrap()], 192);
        for len in 0..good.len() {
            assert_eq!(read_addresses(&good[..len]), []);
        }
        let mut more = good.clone();
        more.extend([5, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(read_addresses(&more).len(), 1);
    }
}
