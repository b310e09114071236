//! The worker pool: takes questions in; threads with a client each answer them.
//!
//! A question waits in a bounded queue; when that is full, the next one is turned away at once,
//! which its caller notices sooner than a long silence. A question whose caller has hung up is not
//! asked: it would cost a bundle.

use crate::Connect;
use crate::activity::Activity;
use crate::error::Failure;
use crate::hint::HintLog;
use crate::queue::{Next, Queue};
use crate::stock::Stock;
use hyper::StatusCode;
use primer::client::tags::Aggregate;
use primer::client::{Embedding, Extract, Tagging};
use primer::service::message::Card;
use primer::{Classification, Client, Cost, HangUp, ServiceError};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::oneshot;

/// A question that a caller asks.
pub(crate) enum Question {
    /// The labels of a text, or of a pair.
    Classify { text: String, pair: Option<String> },
    /// The piece of a context that answers a question.
    Answer { question: String, context: String },
    /// The labels of a text's tokens.
    Tag { text: String, aggregate: Aggregate },
    /// A text as a vector.
    Embed { text: String },
}

/// The result of a question.
pub(crate) enum QuestionResult {
    Labels(Classification),
    Span(Extract),
    Tags(Tagging),
    Vector(Embedding),
}

impl QuestionResult {
    pub(crate) fn cost(&self) -> &Cost {
        self.summary().0
    }

    pub(crate) fn in_range(&self) -> Option<bool> {
        self.summary().1
    }

    /// Returns the number of tokens that were cut off.
    pub(crate) fn removed(&self) -> usize {
        self.summary().2
    }

    fn summary(&self) -> (&Cost, Option<bool>, usize) {
        match self {
            Self::Labels(found) => (&found.cost, found.in_range, found.removed),
            // The part that does not fit goes into further windows.
            Self::Span(found) => (&found.cost, found.in_range, 0),
            Self::Tags(found) => (&found.cost, found.in_range, found.removed),
            Self::Vector(found) => (&found.cost, found.in_range, found.removed),
        }
    }
}

/// An answer, and the first bytes of what the server saw of the question.
pub(crate) struct Answered {
    pub(crate) found: QuestionResult,
    pub(crate) shown: Vec<u8>,
}

struct Job {
    question: Question,
    reply: oneshot::Sender<Result<Answered, Failure>>,
}

/// The threads that answer, and the queue before them.
pub(crate) struct WorkerPool {
    queue: Arc<Queue<Job>>,
    activity: Arc<Activity>,
    lines: Vec<HangUp>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl WorkerPool {
    /// Starts the threads that answer.
    pub(crate) fn open(
        connect: &Connect,
        (workers, room): (usize, usize),
        card: &Card,
        stock: &Arc<Stock>,
    ) -> Self {
        let queue = Arc::new(Queue::new(room));
        let activity = Arc::new(Activity::default());
        let idle = Duration::from_secs(u64::from(card.idle_seconds));
        let (mut lines, mut threads) = (Vec::new(), Vec::new());
        for _ in 0..workers {
            let hang_up = HangUp::default();
            lines.push(hang_up.clone());
            let worker = Worker {
                queue: Arc::clone(&queue),
                activity: Arc::clone(&activity),
                stock: Arc::clone(stock),
                connect: Arc::clone(connect),
                hang_up,
                // The time is what the server said; no value of it may make us spin.
                idle_limit: idle.mul_f64(0.8).max(Duration::from_secs(1)),
                client: None,
            };
            threads.push(std::thread::spawn(move || worker.run()));
        }
        let threads = Mutex::new(threads);
        Self {
            queue,
            activity,
            lines,
            threads,
        }
    }

    pub(crate) fn activity(&self) -> &Arc<Activity> {
        &self.activity
    }

    /// Returns the number of questions that wait.
    pub(crate) fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// Asks questions, and waits for all answers; if one fails, its failure is the result of all.
    pub(crate) async fn ask(&self, questions: Vec<Question>) -> Result<Vec<Answered>, Failure> {
        let room = self.queue.room();
        if questions.len() > room {
            let why = format!(
                "{} inputs at once; at most {room} are accepted",
                questions.len()
            );
            return Err(Failure::new(StatusCode::PAYLOAD_TOO_LARGE, why));
        }
        let (jobs, replies): (Vec<_>, Vec<_>) = questions
            .into_iter()
            .map(|question| {
                let (reply, answer) = oneshot::channel();
                (Job { question, reply }, answer)
            })
            .unzip();
        if !self.queue.put(jobs) {
            let why = format!("{room} questions are waiting already; try again later");
            return Err(Failure::new(StatusCode::TOO_MANY_REQUESTS, why));
        }
        let mut answers = Vec::with_capacity(replies.len());
        for reply in replies {
            let gone = || Failure::unavailable("the gateway is shutting down");
            answers.push(reply.await.map_err(|_| gone())??);
        }
        Ok(answers)
    }

    /// Breaks off what is under way: its callers have waited long enough.
    pub(crate) fn hang_up(&self) {
        self.lines.iter().for_each(HangUp::hang_up);
    }

    /// Takes nothing more, and waits for the threads.
    pub(crate) fn close(&self) {
        self.queue.close();
        self.activity.shut_down();
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        for thread in threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// A thread that answers.
struct Worker {
    queue: Arc<Queue<Job>>,
    activity: Arc<Activity>,
    stock: Arc<Stock>,
    connect: Connect,
    hang_up: HangUp,
    /// How long a connection may be idle before it is given up. A server closes one on which
    /// nothing happens; leaving first is politer, and the next question does not find a dead one.
    idle_limit: Duration,
    client: Option<Client>,
}

impl Worker {
    fn run(mut self) {
        // The client is made now so that the first question does not have to load the tokenizer; if
        // that fails, that question reports why. No place at the server is taken before there is a
        // question.
        if let Ok(client) = self.client() {
            client.disconnect();
        }
        loop {
            match self.queue.take(self.idle_limit) {
                Next::Closed => break,
                Next::Nothing => self.client.iter_mut().for_each(Client::disconnect),
                Next::Item(job) if job.reply.is_closed() => {}
                Next::Item(job) => {
                    self.activity.begins();
                    let answered = self.answer(&job.question);
                    if let Ok(answered) = &answered {
                        self.stock.used(answered.found.cost());
                    }
                    self.activity.ends();
                    let _ = job.reply.send(answered);
                }
            }
        }
        if let Some(client) = self.client {
            client.close();
        }
    }

    /// Returns the client, connected if there was none.
    fn client(&mut self) -> Result<&mut Client, ServiceError> {
        let client = match self.client.take() {
            Some(client) => client,
            None => {
                let mut made = (self.connect)(self.hang_up.clone())?;
                let mut hint = HintLog::default();
                made.observe(move |event| hint.heed(&event));
                made
            }
        };
        Ok(self.client.insert(client))
    }

    /// Asks one question. A panic is a mistake of ours; it costs the question, not the thread.
    fn answer(&mut self, question: &Question) -> Result<Answered, Failure> {
        let asked = catch_unwind(AssertUnwindSafe(|| ask(self.client()?, question)));
        match asked {
            Ok(result) => {
                self.activity.reached(result.as_ref().err());
                if let Err(error) = &result {
                    tracing::warn!("a question failed: {error}");
                }
                result.map_err(|error| Failure::from(&error))
            }
            Err(_) => {
                self.client = None;
                let why = "the gateway failed; its log says where";
                Err(Failure::new(StatusCode::INTERNAL_SERVER_ERROR, why))
            }
        }
    }
}

fn ask(client: &mut Client, question: &Question) -> Result<Answered, ServiceError> {
    let found = match question {
        Question::Classify { text, pair: None } => {
            client.classify(text).map(QuestionResult::Labels)
        }
        Question::Classify {
            text,
            pair: Some(second),
        } => client
            .classify_pair(text, second)
            .map(QuestionResult::Labels),
        Question::Answer { question, context } => {
            client.answer(question, context).map(QuestionResult::Span)
        }
        Question::Tag { text, aggregate } => client.tag(text, *aggregate).map(QuestionResult::Tags),
        Question::Embed { text } => client.embed(text).map(QuestionResult::Vector),
    }?;
    let shown = client.shown().to_vec();
    Ok(Answered { found, shown })
}
