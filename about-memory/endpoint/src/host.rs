//! Checks the name in the header `Host`.
//!
//! A page in a browser can rebind its own name to an address of this machine (DNS rebinding), and then read the answers
//! of the endpoint. Its requests have that name in `Host`, so the endpoint rejects names that the program did not
//! declare. An address cannot be rebound.

use std::net::IpAddr;

/// Whether the value of `Host` is an address, `localhost` or one of `names`, each with or without a port.
pub(crate) fn is_known(host: &str, names: &[String]) -> bool {
    let name = without_port(host);
    let is = |known: &str| name.eq_ignore_ascii_case(known);
    is_address(name) || is("localhost") || names.iter().any(|known| is(known))
}

fn without_port(host: &str) -> &str {
    let is_port = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    match host.rsplit_once(':') {
        // The colons of an IPv6 address are inside of brackets.
        Some((name, port)) if is_port(port) && (!name.contains(':') || name.ends_with(']')) => name,
        _ => host,
    }
}

/// Whether a name is an address. Wildcard addresses are rejected.
fn is_address(name: &str) -> bool {
    let inner = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let address: Option<IpAddr> = match inner {
        Some(inner) => inner.parse().ok().filter(IpAddr::is_ipv6),
        None => name.parse().ok().filter(IpAddr::is_ipv4),
    };
    address.is_some_and(|address| !address.is_unspecified())
}
