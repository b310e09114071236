//! Who may ask.
//!
//! On loopback any program of this machine may, as with any local service without a password. Pages
//! in a browser are another matter: every site may send requests to `127.0.0.1`, and a name that
//! changes its address (DNS rebinding) may even read the answers. So a request must name this
//! machine in `Host`, and if a page sent it (`Origin`), that page must be our own.
//!
//! A token, if there is one, is asked for everywhere but on the page itself, which holds no secret,
//! and `/healthz`.

use crate::error::{Failure, GatewayError};
use hyper::StatusCode;
use hyper::header::{AUTHORIZATION, HOST, HeaderMap, HeaderName, ORIGIN};
use primer::Zeroizing;
use primer_http::is_this_machine;
use std::net::SocketAddr;
use subtle::ConstantTimeEq;

/// Who may ask.
#[derive(Default)]
pub struct Access {
    /// Other machines may, too.
    pub expose: bool,
    /// What they have to show, as `Authorization: Bearer …`.
    pub token: Option<Zeroizing<String>>,
}

impl Access {
    /// Checks that texts do not cross a network in the clear unless that was asked for.
    pub(crate) fn check(&self, address: &SocketAddr) -> Result<(), GatewayError> {
        let open = !address.ip().is_loopback();
        if open && !(self.expose && self.token.is_some()) {
            return Err(GatewayError::Exposed { address: *address });
        }
        Ok(())
    }

    /// Tells whether a token is asked for.
    pub(crate) fn asks_for_token(&self) -> bool {
        self.token.is_some()
    }

    /// Refuses requests that another site's page sends.
    pub(crate) fn admit_host(&self, headers: &HeaderMap) -> Result<(), Failure> {
        let host = text(headers, &HOST).unwrap_or_default();
        if !self.expose && !is_this_machine(host) {
            let why = "the Host header does not name this machine";
            return Err(Failure::new(StatusCode::FORBIDDEN, why));
        }
        let Some(origin) = text(headers, &ORIGIN) else {
            return Ok(());
        };
        // Where other machines may ask, something in front of us speaks TLS.
        let secured = origin.strip_prefix("https://").filter(|_| self.expose);
        if origin.strip_prefix("http://").or(secured) == Some(host) {
            return Ok(());
        }
        let why = "requests from pages of other sites are refused";
        Err(Failure::new(StatusCode::FORBIDDEN, why))
    }

    /// Refuses requests without the token.
    pub(crate) fn admit_token(&self, headers: &HeaderMap) -> Result<(), Failure> {
        let Some(token) = &self.token else {
            return Ok(());
        };
        let shown = text(headers, &AUTHORIZATION).unwrap_or_default();
        let shown = match shown.split_once(' ') {
            Some((scheme, shown)) if scheme.eq_ignore_ascii_case("bearer") => shown,
            _ => "",
        };
        if bool::from(shown.as_bytes().ct_eq(token.as_bytes())) {
            return Ok(());
        }
        let why = "the token is missing or wrong: send \"Authorization: Bearer TOKEN\"";
        Err(Failure::new(StatusCode::UNAUTHORIZED, why))
    }
}

fn text<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    headers.get(name).map(|value| value.to_str().unwrap_or(""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(host: &str, origin: Option<&str>) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, host.parse().unwrap());
        if let Some(origin) = origin {
            headers.insert(ORIGIN, origin.parse().unwrap());
        }
        headers
    }

    #[test]
    fn other_machines_need_a_wish_and_a_token() {
        let open: SocketAddr = "0.0.0.0:8087".parse().unwrap();
        let token = || Some(Zeroizing::new("t".to_owned()));
        let access = |expose, token| Access { expose, token };
        assert!(access(false, None).check(&open).is_err());
        assert!(access(false, token()).check(&open).is_err());
        assert!(access(true, None).check(&open).is_err());
        assert!(access(true, token()).check(&open).is_ok());
        let loopback = "[::1]:8087".parse().unwrap();
        assert!(access(false, None).check(&loopback).is_ok());
    }

    #[test]
    fn pages_of_other_sites_are_refused() {
        let access = Access::default();
        for host in [
            "localhost:8087",
            "127.0.0.1:8087",
            "[::1]:8087",
            "LOCALHOST",
            "127.1.2.3",
        ] {
            assert!(access.admit_host(&headers(host, None)).is_ok(), "{host}");
            let own = format!("http://{host}");
            assert!(
                access.admit_host(&headers(host, Some(&own))).is_ok(),
                "{host}"
            );
        }
        for host in [
            "evil.example:8087",
            "localhost.evil.example",
            "192.0.2.1:8087",
            "",
        ] {
            assert!(access.admit_host(&headers(host, None)).is_err(), "{host}");
        }
        for origin in ["http://evil.example", "null", "https://localhost:8087"] {
            let asked = headers("localhost:8087", Some(origin));
            assert!(access.admit_host(&asked).is_err(), "{origin}");
        }
        assert!(access.admit_host(&HeaderMap::new()).is_err());
    }

    #[test]
    fn an_exposed_gateway_takes_its_own_page_through_tls() {
        let access = Access {
            expose: true,
            token: Some(Zeroizing::new("sesame".to_owned())),
        };
        let asked = |origin| access.admit_host(&headers("ask.example", Some(origin)));
        assert!(asked("https://ask.example").is_ok());
        assert!(asked("http://ask.example").is_ok());
        for origin in ["https://evil.example", "null", "https://ask.example.evil"] {
            assert!(asked(origin).is_err(), "{origin}");
        }
    }

    #[test]
    fn the_token_has_to_be_the_token() {
        let access = Access {
            expose: false,
            token: Some(Zeroizing::new("sesame".to_owned())),
        };
        let shown = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(AUTHORIZATION, value.parse().unwrap());
            access.admit_token(&headers)
        };
        assert!(shown("Bearer sesame").is_ok());
        assert!(shown("bearer sesame").is_ok());
        for wrong in [
            "Bearer sesam",
            "Bearer sesame ",
            "sesame",
            "Basic sesame",
            "Bearer ",
        ] {
            assert_eq!(
                shown(wrong).unwrap_err().status,
                StatusCode::UNAUTHORIZED,
                "{wrong}"
            );
        }
        assert!(access.admit_token(&HeaderMap::new()).is_err());
        assert!(Access::default().admit_token(&HeaderMap::new()).is_ok());
    }
}
