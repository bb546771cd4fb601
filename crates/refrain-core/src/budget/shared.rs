//! The ledger of the money that loops on many machines share. A machine has a loop under a fence; requests of one that lost
//! it change nothing. A request may come more than once, and late: those of one drive are numbered, so that a run is charged once.

use std::collections::BTreeMap;

use camino::Utf8PathBuf;
use jiff::ToSpan;
use jiff::civil::Date;
use serde::{Deserialize, Serialize};

use super::{Allowance, Caps, Ledger, Reservation};
use crate::agent::Usd;
use crate::event::{Identity, Process};

/// For how many days it is known which machine has a loop, after it asked last: no request is under way longer.
const DAYS: i64 = 7;

/// How many of a loop's last runs a request names the costs of. A loop has one agent at a time.
const LAST: usize = 8;

/// What a machine asks for a loop.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MoneyRequest {
    /// The name of the loop.
    pub of: Utf8PathBuf,
    /// The fence under which the machine holds the loop.
    pub fence: u64,
    /// The number of the request, of those under this fence. One that is repeated has the same.
    pub number: u64,
    pub project: String,
    pub change: MoneyChange,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MoneyChange {
    /// Before a run: what earlier ones cost is charged, then as much of the wish is reserved as the caps leave.
    Ask {
        day: Date,
        caps: Caps,
        /// None to ask only whether any money is left.
        wish: Option<Usd>,
        costs: LastCosts,
    },
    /// While it runs: its reservation is to be so much in total.
    Grow { run: u64, to: Usd, caps: Caps },
    /// After it: it cost so much; the whole reservation, if that is unknown.
    Settle { run: u64, cost: Option<Usd> },
    /// The loop is driven no longer: nothing stays reserved.
    Release { costs: LastCosts },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MoneyAnswer {
    /// What the caps allow; none if there is no cap, or nothing reserved that could grow.
    Allowed(Option<Allowance>),
    Done,
    /// Another machine has the loop, or this one asked something else since.
    Overtaken,
}

/// What the last runs of a loop cost, as far as each is known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastCosts {
    /// How many runs were begun and are over.
    count: u64,
    last: Vec<Option<Usd>>,
}

impl LastCosts {
    /// Of [`LoopState::costs`](crate::LoopState::costs), while no agent runs.
    pub fn of(costs: &[Option<Usd>]) -> Self {
        let last = costs[costs.len().saturating_sub(LAST)..].to_vec();
        Self { count: costs.len() as u64, last }
    }

    /// What that run cost. One that was never begun cost nothing.
    fn of_run(&self, run: u64) -> Option<Usd> {
        let Some(back) = self.count.checked_sub(run).filter(|back| *back > 0) else { return Some(Usd(0)) };
        let at = self.last.len().checked_sub(usize::try_from(back).ok()?)?;
        self.last[at]
    }
}

/// What all machines have spent and reserved.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedLedger {
    ledger: Ledger,
    loops: BTreeMap<Utf8PathBuf, LastRequest>,
}

/// The machine that holds a loop, and its last request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct LastRequest {
    fence: u64,
    number: u64,
    /// The day of its last request.
    day: Date,
}

impl SharedLedger {
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Does what a machine asks. What was overtaken by a later request is not done.
    pub fn answer(&mut self, request: MoneyRequest) -> MoneyAnswer {
        let MoneyRequest { of, fence, number, project, change } = request;
        let last = self.loops.entry(of.clone()).or_default();
        if (fence, number) < (last.fence, last.number) {
            return MoneyAnswer::Overtaken;
        }
        (last.fence, last.number) = (fence, number);
        match change {
            MoneyChange::Ask { day, caps, wish, costs } => {
                last.day = day;
                self.forget(day);
                let run = costs.count;
                let own =
                    self.ledger.open().iter().find(|it| it.is(&of, run)).map(|it| it.runner.process.start);
                // It asks once more before the same run.
                let is_kept = own == Some(fence) && wish.is_some();
                self.charge_all(&of, &costs, is_kept.then_some(run));
                MoneyAnswer::Allowed(match wish {
                    None => self.ledger.left(&caps, &project, day),
                    Some(amount) if is_kept => self.ledger.grow(&of, run, amount, &caps),
                    Some(amount) => {
                        let runner = reserved_under(fence);
                        let wish = Reservation { of, run, project, day, runner, amount };
                        self.ledger.reserve(wish, &caps)
                    }
                })
            }
            MoneyChange::Grow { run, to, caps } => {
                MoneyAnswer::Allowed(self.ledger.grow(&of, run, to, &caps))
            }
            MoneyChange::Settle { run, cost } => {
                self.ledger.settle(&of, run, cost);
                MoneyAnswer::Done
            }
            MoneyChange::Release { costs } => {
                self.charge_all(&of, &costs, None);
                MoneyAnswer::Done
            }
        }
    }

    /// Charges a loop for everything that it has reserved, but for one run.
    fn charge_all(&mut self, of: &Utf8PathBuf, costs: &LastCosts, but: Option<u64>) {
        let open = self.ledger.open().iter().filter(|it| it.of == *of && Some(it.run) != but);
        for run in open.map(|it| it.run).collect::<Vec<_>>() {
            self.ledger.settle(of, run, costs.of_run(run));
        }
    }

    /// Drops the loops that have asked for nothing for long, and have nothing reserved.
    fn forget(&mut self, today: Date) {
        let first = today.saturating_sub(DAYS.days());
        let Self { ledger, loops } = self;
        loops.retain(|of, last| last.day >= first || ledger.open().iter().any(|it| it.of == *of));
    }
}

/// Who may take a reservation back is decided by the fence.
fn reserved_under(fence: u64) -> Identity {
    Identity { process: Process { pid: 0, start: fence }, boot: String::new(), host: String::new() }
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;
    use proptest::prelude::*;

    use super::super::CapUsage;
    use super::*;

    const TODAY: Date = date(2026, 11, 21);
    const CAP: u64 = 100;

    fn caps() -> Caps {
        Caps { day: Some(Usd(CAP)), ..Caps::default() }
    }

    /// Machines that ask, each with a number of its own.
    #[derive(Default)]
    struct Machines {
        ledger: SharedLedger,
        sent: Vec<MoneyRequest>,
    }

    impl Machines {
        fn asks(&mut self, of: &str, fence: u64, change: MoneyChange) -> MoneyAnswer {
            let number = self.sent.len() as u64;
            let request = MoneyRequest { of: of.into(), fence, number, project: "shop".into(), change };
            self.sent.push(request.clone());
            self.ledger.answer(request)
        }

        fn spent(&self) -> u64 {
            self.ledger.ledger().standings(&caps(), "shop", TODAY)[0].spent.0
        }
    }

    fn costs(costs: &[Option<u64>]) -> LastCosts {
        LastCosts::of(&costs.iter().map(|cost| cost.map(Usd)).collect::<Vec<_>>())
    }

    /// Asks for so much for the run that follows these.
    fn ask(earlier: &[Option<u64>], wish: u64) -> MoneyChange {
        MoneyChange::Ask { day: TODAY, caps: caps(), wish: Some(Usd(wish)), costs: costs(earlier) }
    }

    fn settle(run: u64, cost: Option<u64>) -> MoneyChange {
        MoneyChange::Settle { run, cost: cost.map(Usd) }
    }

    fn amount(answer: MoneyAnswer) -> u64 {
        match answer {
            MoneyAnswer::Allowed(Some(allowance)) => allowance.amount.0,
            other => panic!("{other:?} allows nothing"),
        }
    }

    #[test]
    fn two_machines_spend_what_the_cap_allows_and_no_more() {
        let mut all = Machines::default();
        assert_eq!(amount(all.asks("a", 2, ask(&[], 70))), 70);
        assert_eq!(amount(all.asks("b", 2, ask(&[], 70))), 30);
        assert_eq!(all.asks("a", 2, settle(0, Some(60))), MoneyAnswer::Done);
        let grow = MoneyChange::Grow { run: 0, to: Usd(70), caps: caps() };
        assert_eq!(amount(all.asks("b", 2, grow)), 40);
        assert_eq!(amount(all.asks("a", 2, ask(&[Some(60)], 70))), 0);
        all.asks("b", 2, settle(0, Some(40)));
        assert_eq!(all.spent(), CAP);
    }

    #[test]
    fn the_machine_that_takes_a_loop_over_settles_what_the_lost_one_reserved() {
        for (case, earlier, charged) in [
            ("nothing is known of the run: all that was reserved", vec![None], 70),
            ("the journal knows what it cost", vec![Some(20)], 20),
            ("it was never begun", vec![], 0),
        ] {
            let mut all = Machines::default();
            all.asks("a", 2, ask(&[], 70));
            let left = CAP - charged;
            assert_eq!(amount(all.asks("a", 3, ask(&earlier, CAP))), left, "{case}");
            assert_eq!(all.spent(), charged, "{case}");
            assert_eq!(all.asks("a", 2, settle(0, Some(50))), MoneyAnswer::Overtaken, "{case}");
            assert_eq!(all.asks("a", 2, ask(&[], 70)), MoneyAnswer::Overtaken, "{case}");
            assert_eq!(all.spent(), charged, "{case}");
        }
    }

    #[test]
    fn a_loop_that_is_driven_no_longer_has_nothing_reserved() {
        let mut all = Machines::default();
        all.asks("a", 2, ask(&[], 70));
        all.asks("a", 2, MoneyChange::Release { costs: costs(&[Some(10)]) });
        assert!(all.ledger.ledger().open().is_empty());
        assert_eq!(all.spent(), 10);
    }

    #[test]
    fn a_request_that_comes_twice_or_late_changes_nothing() {
        let mut all = Machines::default();
        all.asks("a", 2, ask(&[], 20));
        all.asks("a", 2, MoneyChange::Grow { run: 0, to: Usd(70), caps: caps() });
        let before = all.ledger.clone();
        assert_eq!(all.ledger.answer(all.sent[1].clone()), {
            let left = before.ledger().left(&caps(), "shop", TODAY).unwrap();
            MoneyAnswer::Allowed(Some(Allowance {
                amount: Usd(70),
                by: CapUsage { reserved: Usd(70), ..left.by },
            }))
        });
        assert_eq!(all.ledger.answer(all.sent[0].clone()), MoneyAnswer::Overtaken);
        assert_eq!(all.ledger, before);
    }

    #[test]
    fn only_the_last_costs_travel() {
        let last = costs(&(0..20).map(Some).collect::<Vec<_>>());
        assert_eq!(last.last.len(), LAST);
        assert_eq!((last.of_run(19), last.of_run(12)), (Some(Usd(19)), Some(Usd(12))));
        assert_eq!((last.of_run(11), last.of_run(20)), (None, Some(Usd(0))), "unknown; never begun");
    }

    #[test]
    fn loops_that_are_long_over_are_forgotten() {
        let mut all = Machines::default();
        all.asks("a", 2, ask(&[], 1));
        all.asks("a", 2, settle(0, Some(1)));
        all.asks("b", 2, ask(&[], 1));
        let (day, costs) = (date(2026, 12, 24), LastCosts::default());
        all.asks("c", 2, MoneyChange::Ask { day, caps: caps(), wish: None, costs });
        let known: Vec<_> = all.ledger.loops.keys().map(|of| of.as_str()).collect();
        assert_eq!(known, ["b", "c"], "b still has money reserved");
    }

    proptest! {
        /// Machines are lost, and their requests are repeated and late: no run is charged twice, and no more is used than the
        /// cap.
        #[test]
        fn repeated_and_late_requests_change_nothing(
            steps in prop::collection::vec((0..3usize, 0..6u8, 1..60u64, any::<prop::sample::Index>()), 0..150),
        ) {
            let names = ["a", "b", "c"];
            let mut all = Machines::default();
            let (mut fences, mut earlier) = ([2u64; 3], [const { Vec::<Option<u64>>::new() }; 3]);
            // What each loop may use, what it used that no ledger last of, and what all used.
            let (mut holds, mut over) = ([None::<u64>; 3], 0u64);
            for (of, what, money, which) in steps {
                match (what, holds[of]) {
                    (0 | 1, None) => {
                        let allowed = amount(all.asks(names[of], fences[of], ask(&earlier[of], money)));
                        holds[of] = (allowed > 0).then_some(allowed);
                    }
                    (0, Some(held)) => {
                        let (run, to) = (earlier[of].len() as u64, Usd(held + money));
                        let grow = MoneyChange::Grow { run, to, caps: caps() };
                        holds[of] = Some(amount(all.asks(names[of], fences[of], grow)));
                    }
                    // It uses all that it may, and ends.
                    (1 | 2, Some(used)) => {
                        (holds[of], over) = (None, over + used);
                        earlier[of].push(Some(used));
                        all.asks(names[of], fences[of], settle(earlier[of].len() as u64 - 1, Some(used)));
                    }
                    // Its machine is lost; the next one does not know what it used.
                    (3, Some(used)) => {
                        (holds[of], over) = (None, over + used);
                        earlier[of].push(None);
                        fences[of] += 1;
                        let costs = costs(&earlier[of]);
                        all.asks(names[of], fences[of], MoneyChange::Release { costs });
                    }
                    // It was lost before the run was begun.
                    (4, Some(_)) => {
                        holds[of] = None;
                        fences[of] += 1;
                        let costs = costs(&earlier[of]);
                        all.asks(names[of], fences[of], MoneyChange::Release { costs });
                    }
                    _ if !all.sent.is_empty() => {
                        let again = which.get(&all.sent).clone();
                        let of = names.iter().position(|name| *name == again.of).unwrap();
                        // Its machine last no answer to the first one.
                        if let (MoneyAnswer::Allowed(Some(more)), Some(_)) = (all.ledger.answer(again), holds[of]) {
                            holds[of] = Some(more.amount.0);
                        }
                    }
                    _ => {}
                }
                let held: u64 = holds.iter().flatten().sum();
                prop_assert!(over + held <= CAP, "{over} used and {held} held of {CAP}");
                prop_assert!(all.spent() <= over, "charged twice: {} of {over}", all.spent());
            }
            for of in 0..3 {
                if let Some(used) = holds[of] {
                    over += used;
                    earlier[of].push(Some(used));
                }
                let costs = costs(&earlier[of]);
                all.asks(names[of], fences[of], MoneyChange::Release { costs });
            }
            prop_assert!(all.ledger.ledger().open().is_empty());
            prop_assert_eq!(all.spent(), over);
        }
    }
}
