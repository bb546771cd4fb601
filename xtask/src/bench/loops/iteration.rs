//! What a durable iteration costs: the slope between a short and a long loop, so that start-up drops out. The agent
//! does next to nothing, and its own cost is in the figures of all contestants alike.

use crate::bench::measure::sample::to_the_cap;
use crate::bench::report::Row;
use crate::bench::surfaces::contestants::Contestant;
use crate::bench::surfaces::subject::Bench;
use crate::failure::Result;

const SUBJECT: &str = "Durable iteration";
const CONTESTANTS: [Contestant; 3] = [Contestant::Refrain, Contestant::Shell, Contestant::FloorSync2];

pub(crate) fn run(bench: &Bench) -> Result<Vec<Row>> {
    let (rounds, short, long) = bench.pick((11, 10, 160), (1, 2, 6));
    let (mut cpu, mut wall) = ([const { Vec::new() }; 3], [const { Vec::new() }; 3]);
    for round in 0..rounds {
        // Each round begins with another one, so that none always runs on the heels of the same neighbour.
        for turn in 0..CONTESTANTS.len() {
            let who = (round + turn) % CONTESTANTS.len();
            let first = to_the_cap(&bench.tools, CONTESTANTS[who], short)?;
            let second = to_the_cap(&bench.tools, CONTESTANTS[who], long)?;
            let iterations = f64::from(long - short);
            cpu[who].push((second.cpu - first.cpu) / iterations);
            wall[who].push((second.wall - first.wall) / iterations);
        }
    }
    let [_, shell, floor] = CONTESTANTS.map(Contestant::name);
    let what = "one iteration";
    Ok(vec![
        Row::cpu(SUBJECT, what, Some(1.5), &cpu[0], (shell, &cpu[1])),
        Row::cpu(SUBJECT, what, None, &cpu[0], (floor, &cpu[2])),
        Row::wall(SUBJECT, what, None, &wall[0], (shell, &wall[1])),
        Row::wall(SUBJECT, what, None, &wall[0], (floor, &wall[2])),
    ])
}
