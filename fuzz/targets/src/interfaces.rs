//! Settings of a user for interfaces and ports.

use argonet_conduit::tcp::join::interfaces::{Item, Wish};
use argonet_conduit::tcp::join::parse_ports;

pub(crate) fn run(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match Wish::parse("ARGONET_TCP_INTERFACES", &text, 1) {
        Ok(wish) => {
            let shown: Vec<String> = wish.items.iter().map(ToString::to_string).collect();
            let again = Wish::parse("ARGONET_TCP_INTERFACES", &shown.join(","), 1);
            assert_eq!(again.as_ref(), Ok(&wish));
            for item in &wish.items {
                if let Item::Subnet(subnet) = item {
                    assert!(subnet.contains(subnet.address), "{subnet}");
                }
            }
        }
        Err(error) => assert!(error.to_string().starts_with("ARGONET_TCP_INTERFACES: ")),
    }
    match parse_ports(&text) {
        Ok(ports) => assert!(ports.start() <= ports.end()),
        Err(error) => assert!(error.to_string().contains("ARGONET_TCP_PORTS")),
    }
}
