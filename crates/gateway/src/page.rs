//! The page for people: three files, and nothing from elsewhere.
//!
//! It asks as any other program does, by `POST /`, and shows what `meta` says. The browser is told
//! to load from here only, and to run no script but ours.

use hyper::header::{
    CONTENT_SECURITY_POLICY, HeaderValue, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use primer_http::{Page, page};

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
                      connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'";

fn file(text: &str, kind: &'static str) -> Page {
    let mut page = page(text.to_owned(), kind);
    let headers = page.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    page
}

pub(crate) fn index() -> Page {
    file(include_str!("page/index.html"), "text/html; charset=utf-8")
}

pub(crate) fn script() -> Page {
    file(
        include_str!("page/page.js"),
        "text/javascript; charset=utf-8",
    )
}

pub(crate) fn style() -> Page {
    file(include_str!("page/page.css"), "text/css; charset=utf-8")
}
