//! The requests, and what is answered.
//!
//! | request | answer |
//! |---|---|
//! | `POST /`, `POST /models/NAME` | Hugging Face's inference JSON ([`crate::huggingface`]) |
//! | `GET /` | the page for people if they accept HTML, otherwise as `/status` |
//! | `GET /status` | model, task, stock and queue as JSON |
//! | `GET /healthz` | `ok`, or 503 and why not |
//! | `GET /metrics` | numbers for Prometheus |

use crate::body;
use crate::error::Failure;
use crate::guard::Access;
use crate::huggingface::{Request as Question, meta, task};
use crate::metrics::{CONTENT_TYPE, Metrics};
use crate::page;
use crate::stock::Stock;
use crate::worker_pool::{Answered, WorkerPool};
use hyper::body::Incoming;
use hyper::header::{ACCEPT, ALLOW, HeaderValue, RETRY_AFTER};
use hyper::{Method, Request, StatusCode};
use primer::service::message::Card;
use primer_http::{Page, page as typed};
use primer_plan::shape::Head;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Says what an answer cost.
const META: &str = "x-primer-meta";

/// Everything that is needed to answer.
pub(crate) struct Routes {
    card: Card,
    access: Access,
    workers: WorkerPool,
    stock: Arc<Stock>,
    metrics: Metrics,
    address: SocketAddr,
    stopping: AtomicBool,
}

impl Routes {
    pub(crate) fn new(
        card: Card,
        access: Access,
        workers: WorkerPool,
        stock: Arc<Stock>,
        address: SocketAddr,
    ) -> Self {
        Self {
            card,
            access,
            workers,
            stock,
            metrics: Metrics::new(),
            address,
            stopping: AtomicBool::new(false),
        }
    }

    pub(crate) fn card(&self) -> &Card {
        &self.card
    }

    /// Makes `/healthz` report from now on that the gateway is stopping; what is under way goes on.
    pub(crate) fn shut_down(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    /// Ends the threads that answer; at once, if they had their time.
    pub(crate) fn close(&self, drained: bool) {
        if !drained {
            self.workers.hang_up();
        }
        self.workers.close();
    }

    /// Answers one request.
    pub(crate) async fn answer(&self, request: Request<Incoming>) -> Page {
        let page = match self.route(request).await {
            Ok(page) => page,
            Err(failure) => failed(&failure),
        };
        self.metrics.request(page.status());
        page
    }

    async fn route(&self, request: Request<Incoming>) -> Result<Page, Failure> {
        self.access.admit_host(request.headers())?;
        let path = request.uri().path();
        let token = || self.access.admit_token(request.headers());
        // The HTTP stack leaves the body out.
        let method = match request.method() {
            &Method::HEAD => &Method::GET,
            method => method,
        };
        match (method, path) {
            (&Method::GET, "/") if wants_html(&request) => Ok(page::index()),
            (&Method::GET, "/page.js") => Ok(page::script()),
            (&Method::GET, "/page.css") => Ok(page::style()),
            (&Method::GET, "/healthz") => self.health(),
            (&Method::GET, "/" | "/status") => {
                token()?;
                Ok(json_page(&self.status()))
            }
            (&Method::GET, "/metrics") => {
                token()?;
                let questions = (self.workers.waiting(), self.workers.activity().asking());
                let text = self.metrics.text(questions, &self.stock.ready());
                Ok(typed(text, CONTENT_TYPE))
            }
            (&Method::POST, "/") => {
                token()?;
                self.infer(request).await
            }
            (&Method::POST, _) if path.starts_with("/models/") => {
                token()?;
                let name = decoded(&path["/models/".len()..]);
                if name != self.card.model && name.rsplit('/').next() != Some(&self.card.model) {
                    let why = format!("the server's model is {}, not {name}", self.card.model);
                    return Err(Failure::new(StatusCode::NOT_FOUND, why));
                }
                self.infer(request).await
            }
            (&Method::GET | &Method::POST, _) => {
                Err(Failure::new(StatusCode::NOT_FOUND, "there is no such path"))
            }
            _ => {
                let why = "only GET and POST are answered";
                Err(Failure::new(StatusCode::METHOD_NOT_ALLOWED, why))
            }
        }
    }

    async fn infer(&self, request: Request<Incoming>) -> Result<Page, Failure> {
        let body = body::take(request).await?;
        let (question, inputs) = Question::read(&body, &self.card)?;
        let answers = self.workers.ask(inputs).await?;
        answers
            .iter()
            .for_each(|answered| self.metrics.answered(answered));
        let mut page = json_page(&question.answer(&self.card, &answers));
        let summary = HeaderValue::try_from(summary(&answers).to_string());
        let summary = summary.expect("JSON of numbers is plain text");
        page.headers_mut().insert(META, summary);
        Ok(page)
    }

    fn health(&self) -> Result<Page, Failure> {
        if self.stopping.load(Ordering::Relaxed) {
            return Err(Failure::unavailable("stopping"));
        }
        match self.workers.activity().trouble() {
            None => Ok(typed("ok\n".into(), "text/plain")),
            Some(trouble) => Err(Failure::unavailable(trouble)),
        }
    }

    fn status(&self) -> Value {
        let labels = match &self.card.head {
            Head::Classify { labels, .. } | Head::Tokens { labels } => Some(labels),
            _ => None,
        };
        json!({
            "model": self.card.model, "task": task(&self.card.head), "labels": labels,
            "pairs": self.card.types > 1, "scheme": primer::SCHEME_NAME,
            "lengths": self.card.buckets, "stock": self.stock.to_json(),
            "stock_trouble": self.stock.trouble(), "waiting": self.workers.waiting(),
            "asking": self.workers.activity().asking(),
            "answered": self.metrics.answers(), "token": self.access.asks_for_token(),
            "trouble": self.workers.activity().trouble(), "listen": self.address.to_string(),
        })
    }
}

/// Sums up what all answers of a request cost together.
fn summary(answers: &[Answered]) -> Value {
    if let [one] = answers {
        let mut meta = meta(one);
        meta.as_object_mut()
            .map(|fields| fields.remove("server_saw"));
        return meta;
    }
    let costs = || answers.iter().map(|answered| answered.found.cost());
    let in_range: Option<Vec<bool>> = answers.iter().map(|a| a.found.in_range()).collect();
    json!({
        "questions": answers.len(),
        "offline_s": costs().map(|c| c.offline_s).sum::<f64>(),
        "online_s": costs().map(|c| c.online_s).sum::<f64>(),
        "bytes": costs().map(|c| c.bytes).sum::<primer::PhaseBytes>(),
        "prepared_ahead": costs().all(|c| c.prepared_ahead),
        "in_range": in_range.map(|all| all.into_iter().all(|one| one)),
    })
}

fn wants_html(request: &Request<Incoming>) -> bool {
    let accept = request.headers().get(ACCEPT);
    accept.is_some_and(|value| {
        value
            .to_str()
            .is_ok_and(|value| value.contains("text/html"))
    })
}

/// Decodes `%20` and the like in a path.
fn decoded(path: &str) -> Cow<'_, str> {
    if !path.contains('%') {
        return path.into();
    }
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let mut bytes = path.as_bytes().iter();
    let mut plain = Vec::with_capacity(path.len());
    while let Some(&byte) = bytes.next() {
        let code = match (byte, bytes.as_slice()) {
            (b'%', [high, low, ..]) => digit(*high).zip(digit(*low)),
            _ => None,
        };
        match code {
            Some((high, low)) => {
                plain.push((16 * high + low) as u8);
                bytes.nth(1);
            }
            None => plain.push(byte),
        }
    }
    String::from_utf8_lossy(&plain).into_owned().into()
}

fn json_page(value: &Value) -> Page {
    typed(value.to_string(), "application/json")
}

fn failed(failure: &Failure) -> Page {
    let mut page = json_page(&json!({ "error": failure.why }));
    *page.status_mut() = failure.status;
    if matches!(
        failure.status,
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE
    ) {
        let after = HeaderValue::from(failure.after.unwrap_or(2));
        page.headers_mut().insert(RETRY_AFTER, after);
    }
    if failure.status == StatusCode::METHOD_NOT_ALLOWED {
        let methods = HeaderValue::from_static("GET, HEAD, POST");
        page.headers_mut().insert(ALLOW, methods);
    }
    page
}

#[cfg(test)]
mod tests {
    use super::decoded;

    #[test]
    fn names_in_a_path_are_decoded() {
        assert_eq!(decoded("bert/sst2"), "bert/sst2");
        assert_eq!(decoded("sst2%20%28demo%29"), "sst2 (demo)");
        assert_eq!(decoded("f%c3%BCr"), "für");
        assert_eq!(decoded("100%"), "100%");
        assert_eq!(decoded("%2"), "%2");
        assert_eq!(decoded("%zz%+1"), "%zz%+1");
        assert_eq!(decoded("%ff"), "\u{fffd}");
    }
}
