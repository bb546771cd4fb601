//! Removes what must not be seen outside from the foreign texts of a report.

use super::object::Report;
use crate::view::Gate;

impl Report {
    /// The same with every text that a person, an agent or a program wrote passed through `clean`.
    #[must_use]
    pub fn cleaned(mut self, clean: &dyn Fn(&str) -> String) -> Self {
        let gate = |gate: &mut Gate| {
            [&mut gate.command, &mut gate.preview]
                .into_iter()
                .chain(&mut gate.why)
                .for_each(|text| *text = clean(text));
        };
        let one = |text: &mut String| *text = clean(text);
        [&mut self.reason, &mut self.asked.prompt].into_iter().chain(&mut self.needs).for_each(one);
        self.agents.iter_mut().flat_map(|agent| &mut agent.command).for_each(one);
        self.claim.iter_mut().for_each(|claim| one(&mut claim.said));
        self.saved.iter_mut().flat_map(|saved| &mut saved.why_not).for_each(one);
        self.refused.iter_mut().flat_map(|refused| &mut refused.why).for_each(one);
        for critique in &mut self.critiques {
            critique.feedback.iter_mut().chain(&mut critique.error).for_each(one);
        }
        for proof in self.proof.iter_mut().flat_map(|proof| &mut proof.gates) {
            gate(&mut proof.gate);
            proof.log.end.iter_mut().for_each(one);
        }
        for iteration in &mut self.iterations {
            iteration.gates.iter_mut().for_each(gate);
            iteration.preview.iter_mut().for_each(one);
            iteration.summary.iter_mut().for_each(one);
        }
        self
    }
}
