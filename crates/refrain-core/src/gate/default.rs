//! The gates of a loop whose request names none: those that its project offers.

use super::{GateSpec, Offer};
use crate::spec::{Millis, ProtectSpec, Spec};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GateSource {
    /// Nowhere: the loop has none (`--no-gates`).
    Nowhere,
    Named,
    /// The request and the configuration, then the project, which has to offer one if they name none (`--auto-gates`).
    Offered,
    /// The project, if it offers one, as neither the request nor the configuration says anything about gates.
    Default,
}

/// What a request and the configuration say about gates.
#[derive(Clone, Copy, Debug, Default)]
pub struct GateChoice {
    /// The request starts a loop of a known agent that may change code: no plan, session or resumed loop.
    pub starts_agent: bool,
    /// The request or the configuration names a gate.
    pub names_gate: bool,
    /// `--no-promise`, or `promise = false`.
    pub no_promise: bool,
    pub no_gates: bool,
    /// `--auto-gates`, or `auto-gates` of the configuration.
    pub auto_gates: Option<bool>,
}

impl GateChoice {
    pub fn source(self) -> GateSource {
        match self {
            Self { no_gates: true, .. } => GateSource::Nowhere,
            Self { auto_gates: Some(true), .. } => GateSource::Offered,
            Self { auto_gates: None, starts_agent: true, names_gate: false, no_promise: false, .. } => {
                GateSource::Default
            }
            Self { .. } => GateSource::Named,
        }
    }
}

/// The gates and protections of a project, for a loop that takes them by default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DefaultGates {
    pub gates: Vec<GateSpec>,
    /// What its required gates depend on, and its tests.
    pub protect: ProtectSpec,
}

impl DefaultGates {
    /// How long they may take before the first iteration; if they take longer, they run only after claims: 5 minutes.
    pub const SLOW: Millis = Millis(5 * 60 * 1000);

    /// The offer's gates that are trusted, and those that are not.
    pub fn split(offer: Offer, is_trusted: impl Fn(&GateSpec) -> bool) -> (Self, Self) {
        let protect = ProtectSpec {
            frozen: offer.protect,
            existing: offer.protect_existing,
            parts: offer.parts,
            modules: offer.modules,
        };
        let gates = offer.gates.into_iter().map(|gate| GateSpec { by_default: true, ..gate });
        let (trusted, others) = gates.partition(|gate| is_trusted(gate));
        (Self { gates: trusted, protect: protect.clone() }, Self { gates: others, protect })
    }
}

impl Spec {
    /// Adds default gates whose names are free. Without a required one nothing is protected for them.
    pub fn add_default_gates(&mut self, more: DefaultGates) {
        let DefaultGates { gates, protect } = more;
        let is_new = |gate: &GateSpec| !self.gates.iter().any(|given| given.name == gate.name);
        let gates: Vec<_> = gates.into_iter().filter(is_new).collect();
        if gates.iter().any(|gate| gate.hard) {
            extend(&mut self.protect.frozen, protect.frozen);
            extend(&mut self.protect.existing, protect.existing);
            extend(&mut self.protect.parts, protect.parts);
            extend(&mut self.protect.modules, protect.modules);
        }
        self.gates.extend(gates);
        self.gates.sort_by_key(|gate| (gate.is_review(), !gate.hard));
    }
}

fn extend<T: PartialEq>(rules: &mut Vec<T>, more: Vec<T>) {
    for rule in more {
        if !rules.contains(&rule) {
            rules.push(rule);
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const START: GateChoice = GateChoice {
        starts_agent: true,
        names_gate: false,
        no_promise: false,
        no_gates: false,
        auto_gates: None,
    };

    #[rstest]
    #[case::of_an_agent(START, GateSource::Default)]
    #[case::of_a_command(GateChoice { starts_agent: false, ..START }, GateSource::Named)]
    #[case::with_a_gate(GateChoice { names_gate: true, ..START }, GateSource::Named)]
    #[case::without_a_promise(GateChoice { no_promise: true, ..START }, GateSource::Named)]
    #[case::turned_off(GateChoice { auto_gates: Some(false), ..START }, GateSource::Named)]
    #[case::asked_for(GateChoice { auto_gates: Some(true), starts_agent: false, ..START }, GateSource::Offered)]
    #[case::asked_for_with_a_gate(GateChoice { auto_gates: Some(true), names_gate: true, ..START }, GateSource::Offered)]
    #[case::refused(GateChoice { no_gates: true, ..START }, GateSource::Nowhere)]
    #[case::refused_over_the_configuration(
        GateChoice { no_gates: true, names_gate: true, auto_gates: Some(true), ..START },
        GateSource::Nowhere
    )]
    fn gates_come_from(#[case] choice: GateChoice, #[case] source: GateSource) {
        assert_eq!(choice.source(), source);
    }
}
