//! An echo of the prompt in what a command printed: it is not the agent's word. Found line by line, as the lines pass.

/// Looks for the prompt's lines among those that pass; empty lines on either side do not matter.
#[derive(Debug)]
pub(super) struct Echo {
    lines: Vec<Box<[u8]>>,
    /// For each line: how many lines of the prompt's beginning end there (Knuth, Morris and Pratt).
    fallback: Vec<usize>,
    /// How many lines of the prompt have passed just now.
    matched: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EchoMatch {
    /// It is no part of an echo.
    Nothing,
    /// It may be: this many lines of the prompt have passed, this one included.
    Partly(usize),
    /// With it, the whole prompt has passed.
    Whole,
}

impl Echo {
    pub(super) fn of(prompt: &str) -> Self {
        let lines: Vec<Box<[u8]>> = prompt
            .lines()
            .map(|line| line.trim_end().as_bytes())
            .filter(|line| !line.is_empty())
            .map(Box::from)
            .collect();
        let mut fallback = vec![0; lines.len()];
        let mut matched = 0;
        for at in 1..lines.len() {
            while matched > 0 && lines[at] != lines[matched] {
                matched = fallback[matched - 1];
            }
            if lines[at] == lines[matched] {
                matched += 1;
            }
            fallback[at] = matched;
        }
        Self { lines, fallback, matched: 0 }
    }

    /// Takes note of the next line that is not empty.
    pub(super) fn hear(&mut self, line: &[u8]) -> EchoMatch {
        let line = line.trim_ascii_end();
        if self.lines.is_empty() {
            return EchoMatch::Nothing;
        }
        while self.matched > 0 && !self.fits(line) {
            self.matched = self.fallback[self.matched - 1];
        }
        if !self.fits(line) {
            return EchoMatch::Nothing;
        }
        self.matched += 1;
        if self.matched < self.lines.len() {
            return EchoMatch::Partly(self.matched);
        }
        self.matched = 0;
        EchoMatch::Whole
    }

    /// Whether the line is the next of the prompt. Text may come before its first line ("Prompt: …") and after its last
    /// one.
    fn fits(&self, line: &[u8]) -> bool {
        let expected = &*self.lines[self.matched];
        let (first, last) = (self.matched == 0, self.matched + 1 == self.lines.len());
        line == expected || (first && line.ends_with(expected)) || (last && line.starts_with(expected))
    }

    /// Whether the line is one of the prompt's, word for word.
    pub(super) fn has_line(&self, line: &str) -> bool {
        let line = line.trim();
        self.lines.iter().any(|own| own.trim_ascii() == line.as_bytes())
    }
}
