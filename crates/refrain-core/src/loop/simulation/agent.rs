use crate::agent::{AgentReport, Fault, FaultKind, Scope, Tokens, Until};
use crate::event::{AttemptFinished, Exit};
use crate::fingerprint;
use crate::r#loop::tests::journal::{finished, tokens};
use crate::prompt::state_file::WorkStatus;
use crate::simulation::random::Random;
use crate::spec::Millis;

const SIGINT: i32 = 2;
const SIGKILL: i32 = 9;

#[derive(Clone, Copy, Debug)]
pub(super) enum AgentCharacter {
    Willing,
    /// They fail, now at once and now later.
    Clumsy,
    /// They cannot work at all: every one fails at once.
    Broken,
    Stuck,
    Doomed,
    Moody,
}

#[derive(Clone, Copy, Debug)]
enum Role {
    Works,
    Fails,
    FailsAtOnce,
    Hangs,
    /// Prints for as long as it has something to print, and hangs then.
    Babbles,
    WorksSlowly,
    LosesItsKeeper,
    CannotStart,
    /// Prints more than the disk holds, and continues.
    FillsTheDisk,
    MeetsALimit,
    MeetsAnOutage,
    NeedsALogin,
    /// Its provider fails it, and its program sleeps until it tries again.
    SleepsForItsProvider,
}

impl AgentCharacter {
    pub(super) fn sample(random: &mut Random) -> Self {
        use AgentCharacter::{Broken, Clumsy, Doomed, Moody, Stuck, Willing};
        random.pick(&[Willing, Willing, Willing, Clumsy, Clumsy, Broken, Stuck, Doomed, Doomed, Moody, Moody])
    }

    fn role(self, random: &mut Random) -> Role {
        use Role::{
            Babbles, CannotStart, Fails, FailsAtOnce, FillsTheDisk, Hangs, LosesItsKeeper, MeetsALimit,
            MeetsAnOutage, NeedsALogin, SleepsForItsProvider, Works, WorksSlowly,
        };
        let exception = random.once_in(8);
        let all = [
            Works,
            Fails,
            FailsAtOnce,
            Hangs,
            Babbles,
            WorksSlowly,
            LosesItsKeeper,
            CannotStart,
            FillsTheDisk,
            MeetsALimit,
            MeetsAnOutage,
            NeedsALogin,
            SleepsForItsProvider,
        ];
        match self {
            _ if exception => random.pick(&all),
            Self::Moody => random.pick(&all),
            Self::Willing => random.pick(&[Works, Works, WorksSlowly]),
            Self::Clumsy => random.pick(&[Fails, FailsAtOnce, Works]),
            Self::Broken => FailsAtOnce,
            Self::Stuck => random.pick(&[Hangs, Babbles]),
            Self::Doomed => random.pick(&[LosesItsKeeper, LosesItsKeeper, LosesItsKeeper, Works]),
        }
    }
}

/// The script of one agent. Times are milliseconds.
#[derive(Clone, Debug)]
pub(super) struct Agent {
    /// When its process is there, or is known not to be.
    spawns_at: u64,
    starts: bool,
    fills: bool,
    fault: Option<(FaultKind, Option<Millis>)>,
    /// What it says that it tries again for, after its first event.
    retry: Option<(FaultKind, Option<Millis>)>,
    has_printed: bool,
    /// How many tokens it uses for all that it prints, if it reports them.
    uses: Option<u64>,
    used: u64,
    is_cut_off: bool,
    /// How long it takes to end the processes that it leaves, if it leaves any.
    leaves: Option<u64>,
    spawned: bool,
    prints: Vec<u64>,
    ends_at: Option<u64>,
    exit: Exit,
    promises: bool,
    writes: Option<WorkStatus>,
    pub(super) gives_up: bool,
    /// How long it continues after the stop request.
    stubborn: u64,
}

pub(super) enum Sign {
    Spawned,
    CannotStart,
    Printed,
    /// It printed how much it has used so far.
    Used(Tokens),
    Filled,
    /// It waits for its provider itself.
    Retries(FaultKind, Option<Until>),
    /// And how long it takes to end the processes that it left, if any.
    Finished(Box<AttemptFinished>, Option<u64>),
}

impl Agent {
    /// An agent that is started at `now`. `able` ones claim, if they work at all; some that do not call for a person if
    /// it `despairs`.
    pub(super) fn sample(
        random: &mut Random,
        temper: AgentCharacter,
        now: u64,
        (able, despairs): (bool, bool),
    ) -> Self {
        let role = temper.role(random);
        let spawns_at = now + random.below(50);
        let (lasts, exit) = match role {
            Role::Works => (Some(random.between(100, 60_000)), Exit::Code(0)),
            Role::Fails => (Some(random.between(2_000, 60_000)), Exit::Code(1)),
            Role::FailsAtOnce => {
                (Some(random.below(2_000)), random.pick(&[Exit::Code(127), Exit::Signal(11)]))
            }
            Role::Hangs | Role::Babbles | Role::SleepsForItsProvider => (None, Exit::Code(0)),
            Role::WorksSlowly => (Some(random.between(60_000, 600_000)), Exit::Code(0)),
            Role::LosesItsKeeper => (Some(random.below(60_000)), Exit::Lost),
            Role::CannotStart => (None, Exit::Lost),
            Role::FillsTheDisk => (None, Exit::Code(0)),
            Role::MeetsALimit | Role::MeetsAnOutage | Role::NeedsALogin => {
                (Some(random.below(5_000)), Exit::Code(1))
            }
        };
        let prints = match role {
            Role::Works | Role::Fails => random.below(3),
            Role::FillsTheDisk | Role::MeetsALimit | Role::MeetsAnOutage => 1,
            Role::SleepsForItsProvider => 2,
            Role::Babbles | Role::WorksSlowly => random.between(5, 20),
            Role::FailsAtOnce
            | Role::Hangs
            | Role::LosesItsKeeper
            | Role::CannotStart
            | Role::NeedsALogin => 0,
        };
        let rhythm = random.between(100, 30_000);
        let claims = match role {
            Role::Works | Role::WorksSlowly => able,
            // Some claim, and then hang or fail; what a stopped agent said must not count.
            Role::Fails | Role::Babbles | Role::Hangs => random.once_in(10),
            Role::FillsTheDisk => true,
            Role::FailsAtOnce
            | Role::LosesItsKeeper
            | Role::CannotStart
            | Role::MeetsALimit
            | Role::MeetsAnOutage
            | Role::NeedsALogin
            | Role::SleepsForItsProvider => false,
        };
        let by_file = random.once_in(4);
        Self {
            spawns_at,
            starts: !matches!(role, Role::CannotStart),
            fills: matches!(role, Role::FillsTheDisk),
            fault: match role {
                Role::MeetsALimit => Some((FaultKind::Limit, random.maybe(2, 1_000, 40_000_000).map(Millis))),
                Role::MeetsAnOutage => Some((FaultKind::Overloaded, None)),
                Role::NeedsALogin => Some((FaultKind::Login, None)),
                Role::Works
                | Role::Fails
                | Role::FailsAtOnce
                | Role::Hangs
                | Role::Babbles
                | Role::WorksSlowly
                | Role::LosesItsKeeper
                | Role::CannotStart
                | Role::FillsTheDisk
                | Role::SleepsForItsProvider => None,
            },
            retry: match role {
                Role::SleepsForItsProvider => Some(random.pick(&[
                    (FaultKind::RateLimit, None),
                    (FaultKind::RateLimit, Some(Millis(30_000))),
                    (FaultKind::Limit, Some(Millis(3_600_000))),
                    (FaultKind::Overloaded, Some(Millis(90_000))),
                    // It tries again soon, according to its message.
                    (FaultKind::Overloaded, None),
                ])),
                _ => None,
            },
            has_printed: false,
            uses: random.maybe(2, 10, 900),
            leaves: random.maybe(4, 20, 12_000).filter(|_| !matches!(role, Role::CannotStart)),
            spawned: false,
            used: 0,
            is_cut_off: false,
            prints: (1..=prints).rev().map(|i| spawns_at + i * rhythm).collect(),
            ends_at: lasts.map(|ms| spawns_at + ms),
            exit,
            promises: claims && !by_file,
            writes: match claims {
                true => by_file.then_some(WorkStatus::Done),
                // Drawn from no number, so that all other draws stay the same.
                false => (despairs && !spawns_at.is_multiple_of(8)).then_some(WorkStatus::Blocked),
            },
            gives_up: (by_file || !claims) && random.once_in(12),
            stubborn: random.maybe(2, 100, 12_000).unwrap_or(20),
        }
    }

    /// When it does something next, if it ever does.
    pub(super) fn next(&self) -> Option<u64> {
        if !self.spawned {
            return Some(self.spawns_at);
        }
        self.prints.last().copied().into_iter().chain(self.ends_at).min()
    }

    pub(super) fn act(&mut self) -> Sign {
        let now = self.next().expect("asked only when it does something");
        if !self.spawned {
            self.spawned = true;
            return if self.starts { Sign::Spawned } else { Sign::CannotStart };
        }
        if self.prints.last() == Some(&now) && self.ends_at != Some(now) {
            self.prints.pop();
            self.has_printed = true;
            if let (Some((kind, after)), true) = (self.retry, self.prints.is_empty()) {
                return Sign::Retries(kind, after.map(Until::After));
            }
            return match self.uses {
                _ if self.fills => Sign::Filled,
                Some(uses) => {
                    self.used += uses;
                    Sign::Used(tokens(self.used, 0))
                }
                None => Sign::Printed,
            };
        }
        let Self { exit, promises, writes, gives_up, leaves, fills, is_cut_off, .. } = *self;
        // Some programs still report what they waited for.
        let slept = self.retry.filter(|_| self.prints.is_empty() && self.stubborn.is_multiple_of(2));
        let fault = self.fault.filter(|_| matches!(exit, Exit::Code(1))).or(slept);
        let report = AgentReport {
            is_final: !is_cut_off,
            tokens: self.uses.map(|_| (Scope::Attempt, tokens(self.used, 0))),
            fault: fault.map(|(kind, after)| Fault {
                kind,
                message: "so it was".to_owned(),
                until: after.map(Until::After),
            }),
            no_events: is_cut_off && !self.has_printed,
            ..AgentReport::default()
        };
        let finished = AttemptFinished {
            promised: promises,
            state: writes,
            gave_up: gives_up.then(|| "no".to_owned()),
            needs: None,
            state_fault: None,
            left: leaves.is_some(),
            report: (self.uses.is_some() || fault.is_some()).then(|| Box::new(report)),
            // They all fail in the same way.
            fingerprint: matches!(exit, Exit::Code(1)).then(|| fingerprint::of("agent", "error: no")),
            output_error: (fills && exit != Exit::Lost).then(|| "no space left".to_owned()),
            ..finished(exit)
        };
        Sign::Finished(Box::new(finished), leaves)
    }

    /// The stop ladder begins. An agent that ends by itself meanwhile keeps its own exit.
    pub(super) fn stop(&mut self, now: u64) {
        let forced = now + self.stubborn;
        if self.ends_at.is_none_or(|own| own > forced) {
            self.ends_at = Some(forced);
            self.exit = Exit::Signal(if self.stubborn > 8_000 { SIGKILL } else { SIGINT });
            // Some had said their last word before.
            self.is_cut_off = !self.stubborn.is_multiple_of(4);
        }
    }
}
