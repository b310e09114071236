//! The desk: questions come in, threads with a client each answer them.
//!
//! A question waits in a bounded queue; when that is full, the next one is turned away at once,
//! which its caller notices sooner than a long silence. A question whose caller has hung up is not
//! asked: it would cost a bundle.

use crate::Connect;
use crate::error::Failure;
use crate::queue::{Queue, Taken};
use hyper::StatusCode;
use primer::client::tags::Aggregate;
use primer::client::{Embedding, Extract, Tagging};
use primer::service::message::Card;
use primer::{Classification, Client, Cost, ServiceError};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// What somebody wants to know.
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

/// What came of it.
pub(crate) enum Found {
    Labels(Classification),
    Span(Extract),
    Tags(Tagging),
    Vector(Embedding),
}

impl Found {
    pub(crate) fn cost(&self) -> &Cost {
        self.told().0
    }

    pub(crate) fn in_range(&self) -> Option<bool> {
        self.told().1
    }

    /// Tokens that were cut off.
    pub(crate) fn removed(&self) -> usize {
        self.told().2
    }

    fn told(&self) -> (&Cost, Option<bool>, usize) {
        match self {
            Self::Labels(found) => (&found.cost, found.in_range, found.removed),
            // What does not fit goes into further windows.
            Self::Span(found) => (&found.cost, found.in_range, 0),
            Self::Tags(found) => (&found.cost, found.in_range, found.removed),
            Self::Vector(found) => (&found.cost, found.in_range, found.removed),
        }
    }
}

/// An answer, and the first residues of what the server saw of the question.
pub(crate) struct Answered {
    pub(crate) found: Found,
    pub(crate) shown: Vec<u64>,
}

struct Job {
    question: Question,
    reply: oneshot::Sender<Result<Answered, Failure>>,
}

/// What goes on, for whoever keeps the stock and whoever asks how things are.
#[derive(Default)]
pub(crate) struct Activity {
    state: Mutex<Now>,
    changed: Condvar,
}

struct Now {
    asking: usize,
    last: Instant,
    /// Lengths that were asked for while nothing was prepared for them.
    missed: Vec<usize>,
    /// Why the server could not be reached the last time, if so.
    trouble: Option<String>,
    stopping: bool,
}

impl Default for Now {
    fn default() -> Self {
        Self {
            asking: 0,
            last: Instant::now(),
            missed: Vec::new(),
            trouble: None,
            stopping: false,
        }
    }
}

impl Activity {
    fn now(&self) -> MutexGuard<'_, Now> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, how: impl FnOnce(&mut Now)) {
        how(&mut self.now());
        self.changed.notify_all();
    }

    /// How long nobody has asked anything; nothing while somebody does.
    pub(crate) fn quiet(&self) -> Duration {
        let now = self.now();
        match now.asking {
            0 => now.last.elapsed(),
            _ => Duration::ZERO,
        }
    }

    /// Lengths that were missed since this was asked last.
    pub(crate) fn missed(&self) -> Vec<usize> {
        std::mem::take(&mut self.now().missed)
    }

    /// Waits until something changes, at most so long.
    pub(crate) fn wait(&self, patience: Duration) {
        let now = self.now();
        if !now.stopping {
            let waited = self.changed.wait_timeout(now, patience);
            drop(waited.unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// Whether the gateway is about to end.
    pub(crate) fn stopping(&self) -> bool {
        self.now().stopping
    }

    /// Why the server cannot be reached, if it cannot.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.now().trouble.clone()
    }

    /// The server was reached, or not.
    pub(crate) fn reached(&self, error: Option<&ServiceError>) {
        let lost = error.filter(|error| {
            error.is_broken_connection() || matches!(error, ServiceError::Connect { .. })
        });
        match (error, lost) {
            (_, Some(lost)) => self.now().trouble = Some(lost.to_string()),
            (None, None) => self.now().trouble = None,
            // Something else went wrong: it says nothing about the server's reach.
            (Some(_), None) => {}
        }
    }
}

/// Where questions are handed in.
pub(crate) struct Desk {
    queue: Arc<Queue<Job>>,
    activity: Arc<Activity>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Desk {
    /// Starts the threads that answer.
    pub(crate) fn open(connect: &Connect, workers: usize, room: usize, card: &Card) -> Self {
        let queue = Arc::new(Queue::new(room));
        let activity = Arc::new(Activity::default());
        // A server closes a connection on which nothing happens; leaving first is politer, and the
        // next question does not find a dead one.
        let rest = Duration::from_secs(u64::from(card.idle_seconds)).mul_f64(0.8);
        let start = |_| {
            let (queue, activity) = (Arc::clone(&queue), Arc::clone(&activity));
            let connect = Arc::clone(connect);
            std::thread::spawn(move || work(&queue, &activity, &connect, rest))
        };
        let threads = Mutex::new((0..workers).map(start).collect());
        Self {
            queue,
            activity,
            threads,
        }
    }

    pub(crate) fn activity(&self) -> Arc<Activity> {
        Arc::clone(&self.activity)
    }

    /// Questions that wait.
    pub(crate) fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// Asks, and waits for all answers; the first failure is that of all.
    pub(crate) async fn ask(&self, questions: Vec<Question>) -> Result<Vec<Answered>, Failure> {
        let room = self.queue.room();
        if questions.len() > room {
            let why = format!(
                "{} inputs at once, at most {room} are taken",
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
            let why = format!("{room} questions wait already, try again later");
            return Err(Failure::new(StatusCode::TOO_MANY_REQUESTS, why));
        }
        let mut answers = Vec::with_capacity(replies.len());
        for reply in replies {
            let gone = || Failure::unavailable("the gateway is stopping");
            answers.push(reply.await.map_err(|_| gone())??);
        }
        Ok(answers)
    }

    /// Takes nothing more, and waits for the threads.
    pub(crate) fn close(&self) {
        self.queue.close();
        self.activity.change(|now| now.stopping = true);
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        for thread in threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// One thread's life.
fn work(queue: &Queue<Job>, activity: &Activity, connect: &Connect, rest: Duration) {
    let mut client: Option<Client> = None;
    loop {
        match queue.take(rest) {
            Taken::Closed => break,
            Taken::Nothing => client.iter_mut().for_each(Client::rest),
            Taken::Item(job) if job.reply.is_closed() => {}
            Taken::Item(job) => {
                activity.change(|now| now.asking += 1);
                let answered = answer(&mut client, connect, activity, &job.question);
                let missed = answered.as_ref().ok().map(|a| a.found.cost());
                let missed = missed
                    .filter(|cost| !cost.prepared_ahead)
                    .map(|cost| cost.tokens);
                activity.change(|now| {
                    now.asking -= 1;
                    now.last = Instant::now();
                    now.missed.extend(missed);
                });
                let _ = job.reply.send(answered);
            }
        }
    }
    if let Some(client) = client {
        client.close();
    }
}

/// Asks one question. A panic is a mistake of ours; it costs the question, not the thread.
fn answer(
    client: &mut Option<Client>,
    connect: &Connect,
    activity: &Activity,
    question: &Question,
) -> Result<Answered, Failure> {
    let asked = catch_unwind(AssertUnwindSafe(|| {
        if client.is_none() {
            *client = Some(connect()?);
        }
        let client = client.as_mut().expect("just made");
        let found = match question {
            Question::Classify { text, pair: None } => client.classify(text).map(Found::Labels),
            Question::Classify {
                text,
                pair: Some(second),
            } => client.classify_pair(text, second).map(Found::Labels),
            Question::Answer { question, context } => {
                client.answer(question, context).map(Found::Span)
            }
            Question::Tag { text, aggregate } => client.tag(text, *aggregate).map(Found::Tags),
            Question::Embed { text } => client.embed(text).map(Found::Vector),
        }?;
        let shown = client.shown().to_vec();
        Ok::<_, ServiceError>(Answered { found, shown })
    }));
    match asked {
        Ok(result) => {
            activity.reached(result.as_ref().err());
            if let Err(error) = &result {
                tracing::warn!("a question failed: {error}");
            }
            result.map_err(|error| Failure::from(&error))
        }
        Err(_) => {
            *client = None;
            let why = "the gateway failed; its log says where";
            Err(Failure::new(StatusCode::INTERNAL_SERVER_ERROR, why))
        }
    }
}
