//! Files of tokens: what admits whom, and what is refused.

use super::file::{MAX_FILE, PREFIX};
use super::*;
use primer_store::Allowances;
use zeroize::Zeroizing;

fn make(path: &Path, name: &str) -> Result<Zeroizing<String>, ServiceError> {
    new_token(path, name, TokenLimits::default())
}

fn refused(path: &Path) -> String {
    AccessTokens::read(path).err().unwrap().to_string()
}

#[test]
fn tokens_are_kept_as_hashes_and_withdrawn_by_line() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tokens");
    let one = make(&path, "the first").unwrap();
    let two = make(&path, "").unwrap();
    assert!(one.len() == 71 && one.starts_with(PREFIX) && *one != *two);
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text.lines().count(), 2);
    assert!(text.contains(" the first\n") && !text.contains(&one[PREFIX.len()..]));
    let tokens = AccessTokens::read(&path).unwrap();
    assert!(tokens.admits(Some(&one)).is_some() && tokens.admits(Some(&two)).is_some());
    let first = text.lines().next().unwrap();
    for wrong in [None, Some(""), Some(&one[..70]), Some(first)] {
        assert!(tokens.admits(wrong).is_none());
    }
    // The second is withdrawn when the file is read again; a third comes without a newline
    // before it.
    std::fs::write(&path, format!("# friends\n\n{first}")).unwrap();
    let three = make(&path, "three").unwrap();
    assert!(tokens.admits(Some(&two)).is_some());
    let reloaded = tokens.reload();
    assert!(reloaded.tokens == 2 && reloaded.fault.is_none());
    assert!(tokens.admits(Some(&one)).is_some() && tokens.admits(Some(&three)).is_some());
    assert!(tokens.admits(Some(&two)).is_none());
}

/// Admits no token by a file that is gone or has none: the last token can be withdrawn.
#[test]
fn the_last_token_can_be_withdrawn() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tokens");
    let one = make(&path, "the only one").unwrap();
    let line = std::fs::read(&path).unwrap();
    let tokens = AccessTokens::read(&path).unwrap();
    let refuses_all = |what: &str, words: &str| {
        let Reloaded {
            tokens: left,
            fault,
        } = tokens.reload();
        let why = fault.map(|fault| fault.to_string()).unwrap_or_default();
        assert!(why.contains(words), "{what}: {why}");
        assert!(left == 0 && tokens.count() == 0, "{what}");
        assert!(
            tokens.admits(Some(&one)).is_none() && tokens.admits(None).is_none(),
            "{what}"
        );
        // It is admitted again as soon as its line is back.
        std::fs::write(&path, &line).unwrap();
        set_mode(&path, 0o600);
        assert!(tokens.reload().fault.is_none() && tokens.admits(Some(&one)).is_some());
    };
    std::fs::write(&path, "").unwrap();
    refuses_all("empty", "no token");
    std::fs::write(&path, "# all have left\n\n").unwrap();
    refuses_all("only comments", "no token");
    std::fs::write(&path, "gone").unwrap();
    refuses_all("only damage", "line 1");
    std::fs::write(&path, vec![b'#'; MAX_FILE as usize + 1]).unwrap();
    refuses_all("too long", "longer than");
    std::fs::remove_file(&path).unwrap();
    refuses_all("missing", "No such file");
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    let reloaded = tokens.reload();
    assert!(reloaded.tokens == 0 && reloaded.fault.is_some());
    assert!(tokens.admits(Some(&one)).is_none(), "a directory");
}

/// Withdraws what is not in the file, however faulty that is; and a fault adds none.
#[test]
fn a_fault_keeps_no_token_whose_line_is_gone_and_adds_none() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tokens");
    let [one, two] = ["one", "two"].map(|name| make(&path, name).unwrap());
    let known = std::fs::read(&path).unwrap();
    let [first, _, _] = known.split(|b| *b == b'\n').collect::<Vec<_>>()[..] else {
        panic!("two lines");
    };
    let other = dir.path().join("other");
    let new = make(&other, "new").unwrap();
    let added = std::fs::read(&other).unwrap();
    for (rest, mode, words) in [
        (&b"blake3:00 a line cut short"[..], 0o600, "line 3"),
        (b"\xff\xfe", 0o600, "line 3"),
        (b"", 0o620, "chmod 600"),
    ] {
        std::fs::write(&path, &known).unwrap();
        set_mode(&path, 0o600);
        let tokens = AccessTokens::read(&path).unwrap();
        std::fs::write(&path, [first, b"\n", &added, rest].concat()).unwrap();
        set_mode(&path, mode);
        let reloaded = tokens.reload();
        let why = reloaded.fault.unwrap().to_string();
        assert!(why.contains(words), "{why}");
        assert_eq!(reloaded.tokens, 1);
        assert!(tokens.admits(Some(&one)).is_some(), "{why}");
        assert!(tokens.admits(Some(&two)).is_none(), "{why}");
        assert!(tokens.admits(Some(&new)).is_none(), "{why}");
    }
}

fn set_mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn useless_files_are_refused_by_line_and_never_quoted() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tokens");
    make(&path, "").unwrap();
    let good = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, format!("{good}a-plain-old-token-of-before\n")).unwrap();
    let why = refused(&path);
    assert!(
        why.contains("line 2") && !why.contains("plain-old"),
        "{why}"
    );
    assert!(make(&path, "").is_err());
    std::fs::write(&path, &good[..good.trim_end().len() - 1]).unwrap();
    assert!(refused(&path).contains("line 1"));
    std::fs::write(&path, "# nothing\n").unwrap();
    assert!(refused(&path).contains("no token"));
    assert!(refused(&dir.path().join("none")).contains("none"));
    assert!(make(&path, "two\nlines").is_err());
    assert!(is_hash(&good) && !is_hash("primer_00"));
}

#[cfg(unix)]
#[test]
fn files_that_others_have_rights_to_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tokens");
    make(&path, "").unwrap();
    let mode = |mode| set_mode(&path, mode);
    assert!(AccessTokens::read(&path).is_ok(), "it is made private");
    for open in [0o640, 0o604, 0o620, 0o602] {
        mode(open);
        let why = refused(&path);
        assert!(why.contains("chmod 600"), "{why}");
        assert!(make(&path, "").is_err());
    }
    mode(0o400);
    assert!(AccessTokens::read(&path).is_ok());
}

/// Finds a token's line under its name.
fn line_of(tokens: &AccessTokens, token: &str) -> TokenLine {
    tokens.admits(Some(token)).expect("a token of this file")
}

fn answers(limit: &str) -> TokenLimits {
    TokenLimits {
        answers: Some(limit.parse().unwrap()),
        ..TokenLimits::default()
    }
}

#[test]
fn a_line_has_limits_or_leaves_them_to_the_server() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tokens");
    let plain = make(&path, "answers=5 is a name of before").unwrap();
    let limited = new_token(&path, "limited", answers("10/day,100")).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains(";answers=10/day,100 limited\n"), "{text}");
    let tokens = AccessTokens::read(&path).unwrap();
    let (plain, limited) = (line_of(&tokens, &plain), line_of(&tokens, &limited));
    assert_eq!(plain.name, "answers=5 is a name of before");
    assert_eq!(plain.limits, TokenLimits::default());
    assert_eq!(
        (limited.name.as_str(), limited.label()),
        ("limited", "limited".into())
    );
    let server = Allowances {
        prepared: "7".parse().unwrap(),
        answers: "8".parse().unwrap(),
    };
    assert_eq!(plain.limits.or(server), server);
    let both = limited.limits.or(server);
    assert_eq!(
        (both.prepared, both.answers),
        (server.prepared, "10/day,100".parse().unwrap())
    );
    assert_ne!(plain.account(), limited.account());
    assert!(plain.account().lasting);
    // Nothing else may stand there.
    for wrong in [
        "answers=",
        "answers=5;answers=6",
        "replies=5",
        "answers",
        "answers=5/week",
    ] {
        let line = text.replace("answers=10/day,100", wrong);
        std::fs::write(&path, line).unwrap();
        assert!(refused(&path).contains("line 2"), "{wrong}");
    }
}

#[test]
fn of_several_lines_of_one_token_the_first_holds() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tokens");
    let one = new_token(&path, "strict", answers("1")).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    let loose = text
        .replace("answers=1", "answers=unlimited")
        .replace("strict", "loose");
    std::fs::write(&path, format!("{text}{loose}")).unwrap();
    let tokens = AccessTokens::read(&path).unwrap();
    assert_eq!(line_of(&tokens, &one).limits, answers("1"));
    // Both go with it.
    assert_eq!(revoke_token(&path, "loose").unwrap().name, "loose");
    assert!(std::fs::read(&path).unwrap().is_empty());
}

#[test]
fn limits_follow_the_file_unless_it_has_a_fault() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tokens");
    let token = new_token(&path, "one", answers("5")).unwrap();
    let tokens = AccessTokens::read(&path).unwrap();
    let inside = line_of(&tokens, &token);
    let raise = |limit: &str| {
        let text = std::fs::read_to_string(&path).unwrap();
        let at = text.find(";answers=").unwrap();
        let end = at + text[at..].find(' ').unwrap();
        let text = format!("{};answers={limit}{}", &text[..at], &text[end..]);
        std::fs::write(&path, text).unwrap();
    };
    // The one who made the file writable for others may not have written it.
    raise("unlimited");
    set_mode(&path, 0o620);
    assert!(tokens.reload().fault.is_some());
    assert_eq!(tokens.limits_of(&inside), Some(answers("5")));
    set_mode(&path, 0o600);
    raise("3");
    assert!(tokens.reload().fault.is_none());
    assert_eq!(tokens.limits_of(&inside), Some(answers("3")));
    // A line with a mistake admits no session, and leaves those inside what they had last, not
    // what they had when they were admitted; however often the file is read.
    for limit in ["9/week", "9,", "5;answers=9"] {
        raise(limit);
        assert!(tokens.reload().fault.is_some());
        assert!(tokens.admits(Some(&token)).is_none());
        assert_eq!(tokens.limits_of(&inside), Some(answers("3")), "{limit}");
    }
    // It is admitted again when the mistake is corrected, and not before all others are.
    std::fs::write(&path, std::fs::read_to_string(&path).unwrap() + "blake3:00").unwrap();
    raise("4");
    assert!(tokens.reload().fault.is_some() && tokens.admits(Some(&token)).is_none());
    assert_eq!(tokens.limits_of(&inside), Some(answers("3")));
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.trim_end_matches("blake3:00")).unwrap();
    assert!(tokens.reload().fault.is_none() && tokens.admits(Some(&token)).is_some());
    assert_eq!(tokens.limits_of(&inside), Some(answers("4")));
}

/// Checks that a session whose token is withdrawn may have nothing more, whatever else is wrong
/// with the file, until its line is back.
#[test]
fn a_token_that_is_withdrawn_leaves_its_sessions_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tokens");
    make(&path, "stays").unwrap();
    let others = std::fs::read(&path).unwrap();
    let token = new_token(&path, "goes", answers("5")).unwrap();
    let all = std::fs::read(&path).unwrap();
    let own = &all[others.len()..];
    let tokens = AccessTokens::read(&path).unwrap();
    let inside = line_of(&tokens, &token);
    let damaged = [&others[..], b"blake3:00 cut short\n"].concat();
    let in_the_hash = [&others[..], b"blake3:x", &own[b"blake3:".len()..]].concat();
    for left in [
        &others[..],
        b"",
        b"# all have left\n",
        &damaged,
        &in_the_hash,
    ] {
        std::fs::write(&path, left).unwrap();
        tokens.reload();
        assert!(tokens.admits(Some(&token)).is_none());
        assert_eq!(tokens.limits_of(&inside), None);
        std::fs::write(&path, &all).unwrap();
        assert!(tokens.reload().fault.is_none());
        assert_eq!(tokens.limits_of(&inside), Some(answers("5")));
    }
    std::fs::remove_file(&path).unwrap();
    tokens.reload();
    assert_eq!(tokens.limits_of(&inside), None);
    assert_eq!(tokens.limits_of(&line_of_text(&others)), None);
}

fn line_of_text(text: &[u8]) -> TokenLine {
    TokenLine::parse(text.trim_ascii()).expect("a line")
}

#[test]
fn tokens_are_changed_and_revoked_by_name_and_the_rest_stays() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tokens");
    std::fs::write(&path, b"# friends \xff\n\n").unwrap();
    set_mode(&path, 0o600);
    for name in ["one", "twin", "twin", ""] {
        make(&path, name).unwrap();
    }
    let before = std::fs::read(&path).unwrap();
    let (lines, fault) = list_tokens(&path).unwrap();
    assert!(lines.len() == 4 && fault.is_none());
    let changed = limit_token(&path, "one", |limits| TokenLimits {
        prepared: Some("9/day".parse().unwrap()),
        ..limits
    });
    assert_eq!(
        changed.unwrap().limits.prepared.unwrap().to_string(),
        "9/day"
    );
    let text = std::fs::read(&path).unwrap();
    let word = |line: &TokenLine| line.word().into_bytes();
    let expected = [&before[..13], &word(&lines[0]), b";prepared=9/day one\n"].concat();
    assert!(text.starts_with(&expected));
    assert_eq!(
        text[expected.len()..],
        before[13 + word(&lines[0]).len() + 5..]
    );
    let back = limit_token(&path, "one", |_| TokenLimits::default()).unwrap();
    assert_eq!(
        (back.limits, std::fs::read(&path).unwrap()),
        (TokenLimits::default(), before)
    );
    // By name if one is called so, by the first digits of the hash otherwise.
    let why = |called: &str| revoke_token(&path, called).unwrap_err().to_string();
    assert!(why("nobody").contains("no token in it is called \"nobody\""));
    assert!(why(&lines[1].id()[..7]).contains("no token"));
    let twins = why("twin");
    assert!(
        twins.contains(&lines[1].id()) && twins.contains(&lines[2].id()),
        "{twins}"
    );
    assert_eq!(revoke_token(&path, &lines[1].id()).unwrap(), lines[1]);
    assert_eq!(revoke_token(&path, "twin").unwrap(), lines[2]);
    assert_eq!(revoke_token(&path, &lines[3].label()).unwrap(), lines[3]);
    assert_eq!(list_tokens(&path).unwrap().0, lines[..1]);
    // A damaged line keeps none from being revoked, and stays; rights of others do.
    let text = std::fs::read(&path).unwrap();
    std::fs::write(&path, [&text[..], b"blake3:00 cut"].concat()).unwrap();
    set_mode(&path, 0o640);
    assert!(why("one").contains("chmod 600"));
    set_mode(&path, 0o600);
    revoke_token(&path, "one").unwrap();
    let left = std::fs::read(&path).unwrap();
    assert_eq!(left, b"# friends \xff\n\nblake3:00 cut");
    let names: Vec<_> = std::fs::read_dir(dir.path()).unwrap().collect();
    assert_eq!(names.len(), 1, "nothing is left beside it");
}

/// Changes made at once are all there in the end.
#[test]
fn changes_at_once_do_not_lose_each_other() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tokens");
    make(&path, "stays").unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let path = &path;
            scope.spawn(move || {
                for round in 0..4 {
                    let name = format!("{thread}-{round}");
                    make(path, &name).unwrap();
                    limit_token(path, &name, |_| answers("5")).unwrap();
                    if round % 2 == 1 {
                        revoke_token(path, &name).unwrap();
                    }
                }
            });
        }
    });
    let (lines, fault) = list_tokens(&path).unwrap();
    assert!(fault.is_none());
    let limited = lines.iter().filter(|line| line.limits == answers("5"));
    assert_eq!((lines.len(), limited.count()), (9, 8));
}
