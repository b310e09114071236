//! Compiled programs, by fingerprint.
//!
//! Compiling a plan builds its circuits. None of that depends on a text, so it is done once for
//! each plan, before the clock of an answer starts.

use primer_engine::Program;

/// Programs that are kept. A client of one server uses a few lengths.
const KEPT: usize = 8;

/// The programs that were used last.
#[derive(Default)]
pub(super) struct Programs {
    /// The most recently used one is the last.
    kept: Vec<Program>,
}

impl Programs {
    /// Returns the program with a fingerprint, if it is here.
    pub(super) fn get(&mut self, fingerprint: &[u8; 32]) -> Option<Program> {
        let at = self
            .kept
            .iter()
            .position(|p| p.fingerprint() == fingerprint)?;
        let program = self.kept.remove(at);
        self.kept.push(program.clone());
        Some(program)
    }

    /// Keeps a program, and lets go of the one that was not used for the longest time.
    pub(super) fn keep(&mut self, program: Program) {
        if self.get(program.fingerprint()).is_some() {
            return;
        }
        if self.kept.len() == KEPT {
            self.kept.remove(0);
        }
        self.kept.push(program);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use primer_engine::Reveal;
    use primer_server::source::Model;

    #[test]
    fn the_program_that_was_not_used_for_the_longest_time_goes() {
        let model = Model::load(None).unwrap();
        let model = (model.prepare(None, None, |_, _| ())).unwrap();
        let program = |tokens| Program::of(&model, tokens, Reveal::Outputs).unwrap();
        let all: Vec<Program> = (1..=KEPT + 1).map(program).collect();
        let mut programs = Programs::default();
        for program in &all[..KEPT] {
            programs.keep(program.clone());
            programs.keep(program.clone());
        }
        assert_eq!(programs.kept.len(), KEPT);
        assert!(programs.get(all[0].fingerprint()).is_some());
        programs.keep(all[KEPT].clone());
        assert_eq!(programs.kept.len(), KEPT);
        assert!(programs.get(all[0].fingerprint()).is_some());
        assert!(programs.get(all[1].fingerprint()).is_none());
    }
}
