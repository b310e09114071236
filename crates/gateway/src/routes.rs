//! What is asked for, and what is answered.
//!
//! | request | answer |
//! |---|---|
//! | `POST /`, `POST /models/NAME` | Hugging Face's inference JSON ([`crate::huggingface`]) |
//! | `GET /` | the page for people if they accept HTML, otherwise as `/status` |
//! | `GET /status` | model, task, stock and queue as JSON |
//! | `GET /healthz` | `ok`, or 503 and why not |
//! | `GET /metrics` | numbers for Prometheus |

use crate::desk::{Answered, Desk};
use crate::error::Failure;
use crate::guard::Access;
use crate::huggingface::{Request as Question, meta, task};
use crate::metrics::{CONTENT_TYPE, Metrics};
use crate::page;
use crate::stock::Stock;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE as TYPE, HeaderValue, RETRY_AFTER};
use hyper::{Method, Request, Response, StatusCode};
use primer::service::message::Card;
use primer_plan::shape::Head;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The longest body: far more than any model reads.
const BODY_BYTES: usize = 1 << 20;
/// The longest that it may take to arrive.
const BODY_TIME: Duration = Duration::from_secs(30);
/// Says what an answer cost.
const META: &str = "x-primer-meta";

pub(crate) type Page = Response<Full<Bytes>>;

/// Everything that answers need.
pub(crate) struct Routes {
    card: Card,
    access: Access,
    desk: Desk,
    stock: Stock,
    metrics: Metrics,
    address: SocketAddr,
    stopping: AtomicBool,
}

impl Routes {
    pub(crate) fn new(
        card: Card,
        access: Access,
        desk: Desk,
        stock: Stock,
        address: SocketAddr,
    ) -> Self {
        Self {
            card,
            access,
            desk,
            stock,
            metrics: Metrics::new(),
            address,
            stopping: AtomicBool::new(false),
        }
    }

    pub(crate) fn card(&self) -> &Card {
        &self.card
    }

    /// Health says so from now on; what is under way goes on.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    /// Ends the threads that answer.
    pub(crate) fn close(&self) {
        self.desk.close();
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
        match (request.method(), path) {
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
                let text = self.metrics.text(self.desk.waiting(), &self.stock.ready());
                Ok(typed(text, CONTENT_TYPE))
            }
            (&Method::POST, "/") => {
                token()?;
                self.infer(request).await
            }
            (&Method::POST, _) if path.starts_with("/models/") => {
                token()?;
                let name = &path["/models/".len()..];
                if name != self.card.model && name.rsplit('/').next() != Some(&self.card.model) {
                    let why = format!("the server's model is {}, not {name}", self.card.model);
                    return Err(Failure::new(StatusCode::NOT_FOUND, why));
                }
                self.infer(request).await
            }
            (&Method::GET | &Method::POST, _) => {
                Err(Failure::new(StatusCode::NOT_FOUND, "there is nothing here"))
            }
            _ => {
                let why = "only GET and POST are answered";
                Err(Failure::new(StatusCode::METHOD_NOT_ALLOWED, why))
            }
        }
    }

    async fn infer(&self, request: Request<Incoming>) -> Result<Page, Failure> {
        let body = Limited::new(request.into_body(), BODY_BYTES).collect();
        let late = |_| Failure::new(StatusCode::REQUEST_TIMEOUT, "the body took too long");
        let body = tokio::time::timeout(BODY_TIME, body).await.map_err(late)?;
        let body = body.map_err(
            |error| match error.is::<http_body_util::LengthLimitError>() {
                true => {
                    let why = format!("a body has at most {BODY_BYTES} bytes");
                    Failure::new(StatusCode::PAYLOAD_TOO_LARGE, why)
                }
                false => Failure::bad("the body did not arrive whole"),
            },
        )?;
        let (question, inputs) = Question::read(&body.to_bytes(), &self.card)?;
        let answers = self.desk.ask(inputs).await?;
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
        match self.desk.activity().trouble() {
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
            "pairs": self.card.types > 1, "scheme": self.card.scheme.name(),
            "lengths": self.card.buckets, "stock": self.stock.to_json(),
            "stock_trouble": self.stock.trouble(), "waiting": self.desk.waiting(),
            "answered": self.metrics.answers(), "token": self.access.asks_for_token(),
            "trouble": self.desk.activity().trouble(), "listen": self.address.to_string(),
        })
    }
}

/// What all answers of a request cost together.
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

/// A page of some type.
pub(crate) fn typed(body: String, kind: &'static str) -> Page {
    let mut page = Response::new(Full::new(Bytes::from(body)));
    let headers = page.headers_mut();
    headers.insert(TYPE, HeaderValue::from_static(kind));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    page
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
        page.headers_mut()
            .insert(RETRY_AFTER, HeaderValue::from_static("2"));
    }
    page
}
