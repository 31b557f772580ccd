//! The scripts' headers say what their bodies use and what the Rust side sends.

use std::collections::{BTreeMap, BTreeSet};

use shared::adapters::redis::{SCRIPTS, Script};
use shared::limits;

/// A header's sections: KEYS and ARGV as (index, mark, name), and the words of the replies.
struct Header {
    keys: Vec<(usize, char, String)>,
    args: Vec<(usize, char, String)>,
    replies: BTreeSet<String>,
}

fn parse(script: &Script) -> Header {
    let mut header = Header {
        keys: vec![],
        args: vec![],
        replies: BTreeSet::new(),
    };
    let mut section = "";
    let lines = script
        .source
        .lines()
        .skip(1)
        .take_while(|line| line.starts_with("--"));
    for line in lines {
        let text = line.trim_start_matches("--");
        match text.trim() {
            name @ ("KEYS" | "ARGV" | "REPLIES") => section = name,
            "" => {}
            // Continued lines of a reply are indented further.
            _ if section == "REPLIES" && text.starts_with("    ") => {}
            entry if section == "REPLIES" => {
                let word = entry.split([' ', ':']).next().unwrap();
                header.replies.insert(word.to_owned());
            }
            entry if !section.is_empty() => {
                let mut words = entry.split_whitespace();
                let index = words.next().unwrap();
                let mark = index
                    .chars()
                    .last()
                    .filter(|mark| "?+".contains(*mark))
                    .unwrap_or(' ');
                let number = index.trim_end_matches(['?', '+']).parse();
                let number = number.unwrap_or_else(|_| panic!("{}: {line}", script.name));
                let entry = (number, mark, words.next().unwrap().to_owned());
                if section == "KEYS" {
                    &mut header.keys
                } else {
                    &mut header.args
                }
                .push(entry);
            }
            _ => {}
        }
    }
    header
}

fn names(entries: &[(usize, char, String)]) -> Vec<String> {
    let all = entries.iter().enumerate().map(|(at, (index, mark, name))| {
        assert_eq!(at + 1, *index, "{name}");
        format!("{name}{mark}").trim_end().to_owned()
    });
    all.collect()
}

/// The literal indexes with which `table` is read.
fn used(text: &str, table: &str) -> BTreeSet<usize> {
    let parts = text.split(table).skip(1);
    parts
        .filter_map(|rest| rest.strip_prefix('[')?.split(']').next()?.parse().ok())
        .collect()
}

#[test]
fn headers_bodies_and_bindings_agree() {
    let files: BTreeSet<String> = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../lua"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter_map(|name| name.strip_suffix(".lua").map(str::to_owned))
        .collect();
    let bound: BTreeSet<String> = SCRIPTS
        .iter()
        .map(|script| script.name.to_owned())
        .collect();
    assert_eq!(
        files, bound,
        "a file without a binding, or the other way round"
    );

    for script in SCRIPTS {
        let header = parse(script);
        assert_eq!(names(&header.keys), script.keys, "KEYS of {}", script.name);
        assert_eq!(names(&header.args), script.args, "ARGV of {}", script.name);
        let text = script.text();
        let all: BTreeSet<usize> = header.keys.iter().map(|(index, ..)| *index).collect();
        assert_eq!(used(&text, "KEYS"), all, "KEYS that {} uses", script.name);
        let repeats = header.args.iter().find(|(_, mark, _)| *mark == '+');
        let plain = header.args.iter().filter(|(_, mark, _)| *mark != '+');
        let plain: BTreeSet<usize> = plain.map(|(index, ..)| *index).collect();
        assert_eq!(used(&text, "ARGV"), plain, "ARGV that {} uses", script.name);
        if let Some((first, ..)) = repeats {
            assert!(
                text.contains(&format!("for i = {first}, #ARGV, 2 do")),
                "{}",
                script.name
            );
        }
    }
}

#[test]
fn every_reply_in_a_body_is_in_its_header() {
    for script in SCRIPTS {
        let header = parse(script);
        let text = script.text();
        // Words that begin a string which the script returns or joins into its answer.
        let mut seen = BTreeMap::new();
        for line in text.lines() {
            let code = line.trim();
            let Some(rest) = code
                .strip_prefix("return ")
                .or_else(|| code.strip_prefix("answer = "))
            else {
                continue;
            };
            let strings = rest.split('\'').skip(1).step_by(2);
            for literal in strings {
                let word = literal.split([' ', ':']).next().unwrap();
                if word.len() > 2
                    && word
                        .bytes()
                        .all(|byte| byte.is_ascii_lowercase() || byte == b'_')
                {
                    seen.insert(word.to_owned(), code.to_owned());
                }
            }
        }
        for (word, line) in seen {
            let listed = script
                .source
                .lines()
                .take_while(|line| !line.starts_with("local"));
            let listed = header.replies.contains(&word)
                || listed
                    .filter(|line| line.starts_with("--"))
                    .any(|line| line.contains(&word));
            assert!(
                listed,
                "{}: {word} in `{line}` is not in the header",
                script.name
            );
        }
    }
}

#[test]
fn scripts_have_a_shebang_and_only_the_givers_back_may_run_with_full_memory() {
    let allow = ["claim", "confirm", "release", "gate", "guard"];
    for script in SCRIPTS {
        let text = script.text();
        let first = text.lines().next().unwrap();
        let wanted = match script.name {
            name if allow.contains(&name) => "#!lua flags=allow-oom",
            "snapshot" | "look" => "#!lua flags=no-writes",
            _ => "#!lua",
        };
        assert_eq!(first, wanted, "{}", script.name);
        assert!(!text.contains("no_include_"), "{}", script.name);
        assert!(!text.contains("fs:"), "{} builds a key", script.name);
    }
}

#[test]
fn limits_in_the_scripts_are_those_of_rust() {
    let value = |script: &str, name: &str| {
        let script = SCRIPTS.iter().find(|known| known.name == script).unwrap();
        let start = format!("local {name} = ");
        let text = script.text();
        let line = text.lines().find_map(|line| line.strip_prefix(&start));
        line.unwrap().parse::<u64>().unwrap()
    };
    for script in ["confirm", "release"] {
        assert_eq!(value(script, "ROWS_MAX"), limits::SCRIPT_BATCH_MAX as u64);
    }
    assert_eq!(value("adjust", "STOCK_MAX"), limits::STOCK_MAX);
    for (name, wanted) in [
        ("CLAIM_FIRST_MS", limits::CLAIM_FIRST_MS),
        ("CLAIM_LATER_MIN_MS", limits::CLAIM_LATER_MIN_MS),
        ("CLAIM_LATER_MAX_MS", limits::CLAIM_LATER_MAX_MS),
    ] {
        assert_eq!(value("claim", name), wanted);
    }
}
