//! The user's settings of connections.

use super::dial::DialConfig;
use super::interfaces::{self, InterfaceError, Wish};
use super::ports::{PortsError, parse_ports};
use super::user::JoinConfig;
use argonet_settings::{
    Settings, TCP_CONNECT_RETRIES, TCP_INTERFACE_COUNT, TCP_INTERFACES, TCP_PORTS,
    TCP_UNREACHABLE_TIMEOUT, TCP_WORKER_IP,
};

/// A setting about connections has a wrong value.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JoinSettingsError {
    /// Of interfaces.
    #[error(transparent)]
    Interfaces(#[from] InterfaceError),
    /// Of ports.
    #[error(transparent)]
    Ports(#[from] PortsError),
}

/// Reads how a [`Joiner`](super::Joiner) is set up, and which interfaces the user wants.
///
/// # Errors
/// [`JoinSettingsError`] names the variable, its value and the allowed values.
pub fn from_settings(settings: &Settings) -> Result<(JoinConfig, Wish), JoinSettingsError> {
    let named = settings.get(&TCP_INTERFACES);
    let subnet = settings.get(&TCP_WORKER_IP);
    let (variable, list) = match (named, subnet) {
        (None, Some(subnet)) => (TCP_WORKER_IP.name(), subnet),
        (named, _) => (TCP_INTERFACES.name(), named.unwrap_or_default()),
    };
    let most = settings.get(&TCP_INTERFACE_COUNT) as usize;
    let wish = Wish::parse(variable, &list, most)?;
    let unreachable = settings.get(&TCP_UNREACHABLE_TIMEOUT);
    let retries = settings.get(&TCP_CONNECT_RETRIES) as u32;
    let config = JoinConfig {
        dial: DialConfig {
            tries_per_address: retries + 1,
            unreachable_ns: unreachable.as_nanos() as u64,
            ..DialConfig::default()
        },
        ports: parse_ports(&settings.get(&TCP_PORTS).unwrap_or_default())?,
        ..JoinConfig::default()
    };
    Ok((config, wish))
}

/// The addresses of a job over several hosts, or the error, in words.
pub(crate) fn listens_on(settings: &Settings) -> String {
    let host = "this host";
    let chosen = from_settings(settings)
        .map_err(|error| error.to_string())
        .and_then(|(_, wish)| {
            let all = interfaces::list(host).map_err(|error| error.to_string())?;
            interfaces::choose(&all, &wish, false, host).map_err(|error| error.to_string())
        });
    match chosen {
        Ok(chosen) => {
            let names = chosen.iter().map(|i| format!("{} ({})", i.address, i.name));
            names.collect::<Vec<_>>().join(", ")
        }
        Err(why) => format!("nothing: {why}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(given: &[(&str, &str)]) -> Result<(JoinConfig, Wish), JoinSettingsError> {
        let pairs = given
            .iter()
            .map(|(name, value)| ((*name).into(), (*value).into()));
        from_settings(&Settings::from_pairs(pairs).unwrap())
    }

    #[test]
    fn without_settings_the_defaults_hold() {
        assert_eq!(read(&[]), Ok((JoinConfig::default(), Wish::default())));
    }

    /// spec T5: the settings of a user.
    #[test]
    fn each_setting_has_its_effect() {
        let (config, wish) = read(&[
            ("ARGONET_TCP_INTERFACES", "eth0, 10.0.0.0/8"),
            ("ARGONET_TCP_INTERFACE_COUNT", "2"),
            ("ARGONET_TCP_PORTS", "4000-4010"),
            ("ARGONET_TCP_CONNECT_RETRIES", "4"),
            ("ARGONET_TCP_UNREACHABLE_TIMEOUT", "1.5"),
            ("GASNET_WORKERIP", "192.168.0.0"),
        ])
        .unwrap();
        assert_eq!((wish.items.len(), wish.most), (2, 2));
        assert_eq!(config.ports, 4000..=4010);
        assert_eq!(config.dial.tries_per_address, 5);
        assert_eq!(config.dial.unreachable_ns, 1_500_000_000);
        let (_, wish) = read(&[("GASNET_WORKERIP", "192.168.0.0")]).unwrap();
        assert_eq!(
            wish,
            Wish::parse("GASNET_WORKERIP", "192.168.0.0", 0).unwrap()
        );
    }

    #[test]
    fn errors_name_the_variable() {
        for (name, value) in [
            ("ARGONET_TCP_INTERFACES", "eth0,"),
            ("GASNET_WORKERIP", "10.0.0.0/99"),
            ("ARGONET_TCP_PORTS", "9-8"),
        ] {
            let text = read(&[(name, value)]).unwrap_err().to_string();
            assert!(text.starts_with(name), "{text}");
        }
    }
}
