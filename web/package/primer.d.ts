/** What a server offers. */
export interface Card {
  model: string;
  /** What it answers with, in words. */
  does: string;
  /** Whether `classify` works. */
  classifies: boolean;
  /** Whether it judges pairs of texts. */
  pairs: boolean;
  labels: string[] | null;
  /** The padded lengths on offer, in tokens, ascending. */
  lengths: number[];
  /** Bytes that are fetched once, before the first answer is prepared. */
  hint_bytes: number;
}

/** What an answer cost. */
export interface Cost {
  /** Seconds of preparing if it was done now; 0 if it was done ahead. */
  offline_s: number;
  online_s: number;
  bytes: { offline_up: number; offline_down: number; online_up: number; online_down: number };
  /** The padded length: all that the server learnt about the text. */
  tokens: number;
  prepared_ahead: boolean;
}

export interface Classification {
  label: string;
  /** Its probability; null if the server reveals only labels. */
  score: number | null;
  /** Of every label; empty if the server reveals only labels. */
  scores: { label: string; score: number }[];
  logits: number[];
  /** Tokens that were cut off because the text was too long. */
  removed: number;
  /** False if a value inside the model came near the end of its range: it may be wrong. */
  in_range: boolean | null;
  /** The first bytes of the text as they left for the server, in hexadecimal digits. */
  shown: string;
  cost: Cost;
}

/** What happens while one waits. */
export type Progress =
  | { phase: "moved"; down: number; up: number }
  | { phase: "hint"; done: number; bytes: number }
  | { phase: "preparing"; tokens: number; bundles: number; expected: number }
  | { phase: "prepared"; tokens: number; bundles: number; seconds: number }
  | { phase: "retry"; error: string; attempt: number }
  | { phase: "waiting"; error: string; seconds: number }
  | { phase: "discarded"; error: string };

export interface Options {
  /** The access token, if the server asks for one. */
  token?: string;
  onprogress?: (progress: Progress) => void;
}

/** A client of one server. It does one thing after another. */
export interface Client {
  readonly card: Card;
  /** Bytes of its own program, as they were fetched. */
  readonly fetched: number;
  /** Whether what is prepared stays in this browser; only one tab has that at a time. */
  readonly keeps: "files" | "nothing, since another tab does" | "nothing";
  onprogress?: (progress: Progress) => void;
  /** Prepares some answers ahead, for texts of up to so many tokens; a sentence if not given. */
  prepare(count: number, options?: { tokens?: number }): Promise<void>;
  /** Tells how many answers are prepared, by padded length. */
  prepared(): Promise<Record<string, number>>;
  /** Finds the label of a text, or of a pair of texts. */
  classify(text: string, options?: { pair?: string }): Promise<Classification>;
  /** Ends everything at once; what is under way is lost. */
  close(): void;
}

/** Says why this browser, or this page, cannot do it; nothing if it can. */
export function trouble(): string;

/** Connects to a server; by default to the one that this page is from. */
export function connect(url?: string | URL, options?: Options): Promise<Client>;
