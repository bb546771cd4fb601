//! Graphs: their problems, and what follows from them; by hand, and against a slow and simple model.

use proptest::prelude::*;

use super::*;

/// Tasks as `id status dependencies…`, `1.1` being a part of `1`.
fn tasks(lines: &[&str]) -> Vec<Task> {
    let of = |line: &&str| {
        let mut words = line.split_whitespace();
        let id: TaskId = words.next().unwrap().parse().unwrap();
        let mut task = Task::new(id.clone(), format!("task {id}"));
        task.status = TaskStatus::named(words.next().unwrap()).unwrap();
        task.dependencies = words.map(|on| on.parse().unwrap()).collect();
        task.parent = id.as_str().rsplit_once('.').map(|(parent, _)| parent.parse().unwrap());
        task
    };
    lines.iter().map(of).collect()
}

fn graph(lines: &[&str]) -> Graph {
    let (graph, problems) = Graph::build(tasks(lines));
    assert!(problems.iter().all(|problem| !problem.is_error()), "{problems:?}");
    graph
}

fn wrong(lines: &[&str]) -> Vec<String> {
    Graph::build(tasks(lines)).1.iter().map(ToString::to_string).collect()
}

fn names(graph: &Graph, tasks: &[usize]) -> Vec<String> {
    tasks.iter().map(|task| graph.tasks()[*task].id.to_string()).collect()
}

fn waves(graph: &Graph) -> Vec<String> {
    graph.waves().iter().map(|wave| names(graph, wave).join(" ")).collect()
}

fn at(graph: &Graph, id: &str) -> usize {
    graph.index(&id.parse().unwrap()).unwrap()
}

#[test]
fn a_wave_holds_the_tasks_whose_dependencies_come_before() {
    let graph =
        graph(&["3 pending 1 2", "1 done", "2 in-progress 1", "4 pending", "5 pending 3 4", "6 deferred 5"]);
    assert_eq!(waves(&graph), ["2 4", "3", "5"]);
    assert_eq!(graph.wave_of(at(&graph, "3")), Some(1));
    assert_eq!(graph.wave_of(at(&graph, "1")), None);
    assert_eq!(graph.to_do(), 4);
}

#[test]
fn subtasks_inherit_dependencies_and_stand_in_for_their_parent() {
    let graph = graph(&[
        "1 pending",
        "2 expanded 1",
        "2.1 pending",
        "2.2 expanded 2.1",
        "2.2.1 pending",
        "3 pending 2",
    ]);
    assert_eq!(waves(&graph), ["1", "2.1", "2.2.1", "3"]);
    let names = |tasks: Vec<usize>| names(&graph, &tasks).join(" ");
    assert_eq!(names(graph.dependencies(at(&graph, "2.2.1"))), "1 2.1");
    assert_eq!(names(graph.dependencies(at(&graph, "3"))), "2.1 2.2.1");
    assert_eq!(names(graph.dependents(at(&graph, "1"))), "2.1 2.2.1");
    assert_eq!(names(graph.dependents(at(&graph, "2.2.1"))), "3");
}

#[test]
fn a_parent_that_is_to_do_itself_comes_after_its_subtasks() {
    let graph = graph(&["1 pending", "1.1 pending", "1.2 cancelled", "2 pending 1"]);
    assert_eq!(waves(&graph), ["1.1", "1", "2"]);
    assert_eq!(
        names(&graph, &graph.dependencies(at(&graph, "1"))),
        ["1.1"],
        "what was given up is no reason to wait"
    );
}

#[test]
fn parts_of_a_done_or_cancelled_task_do_not_run() {
    let graph =
        graph(&["1 done", "1.1 pending", "2 cancelled", "2.1 pending", "3 pending 1.1", "4 pending 2.1"]);
    assert_eq!(waves(&graph), ["3", "4"], "what is not done comes before what waits for it");
    assert_eq!(graph.waits_on(at(&graph, "3")), None);
    assert_eq!(graph.waits_on(at(&graph, "4")), Some(at(&graph, "2.1")));
}

#[test]
fn an_expanded_task_is_done_when_its_subtasks_are() {
    let graph =
        graph(&["1 expanded", "1.1 done", "1.2 cancelled", "2 pending 1", "3 expanded", "3.1 cancelled"]);
    assert_eq!(waves(&graph), ["2"]);
    assert_eq!(graph.standing(at(&graph, "1")), TaskReadiness::Done);
    assert_eq!(graph.standing(at(&graph, "3")), TaskReadiness::Stopped, "nothing of it was done");
}

#[test]
fn a_task_waits_on_a_stopped_task_also_indirectly() {
    let lines = ["1 cancelled", "2 pending 1", "3 pending 2", "4 expanded 3", "4.1 pending", "5 pending 4"];
    let graph = graph(&lines);
    assert_eq!(graph.waits_on(at(&graph, "5")), Some(at(&graph, "1")));
    assert_eq!(wrong(&lines), ["task 2 waits on task 1, which is cancelled: it cannot begin"]);
}

#[test]
fn a_task_behind_a_stopped_one_keeps_its_wave() {
    let graph = graph(&["1 pending", "2 blocked 1", "3 pending 2"]);
    assert_eq!(waves(&graph), ["1", "", "3"]);
    assert_eq!((graph.wave_of(1), graph.level_of(1)), (None, Some(1)));
}

#[test]
fn a_rank_is_the_longest_way_to_the_end() {
    let mut tasks = tasks(&["1 pending", "2 pending 1", "3 pending 1", "4 pending 2 3", "5 done 1"]);
    tasks[1].complexity = 8;
    tasks[2].complexity = 3;
    let (graph, _) = Graph::build(tasks);
    let ranks: Vec<_> = (0..5).map(|task| graph.rank(task)).collect();
    assert_eq!(ranks, [10, 9, 4, 1, 0]);
}

#[test]
fn every_error_of_a_graph_is_found_at_once() {
    let lines = [
        "1 pending 3",
        "3 pending 2",
        "2 pending 1",
        "4 pending 4",
        "4 done",
        "login pending logn",
        "6.1 pending",
    ];
    assert_eq!(
        wrong(&lines),
        [
            "more than one task is called 4",
            "task 6.1 is said to be a part of 6, which is not there",
            "task 4 depends on itself",
            "task login depends on logn, which is not there; did you mean login?",
            "tasks wait for each other in a cycle: 1 -> 3 -> 2 -> 1",
        ]
    );
}

#[test]
fn each_set_of_tasks_that_wait_for_each_other_is_named_by_its_shortest_way() {
    let lines = ["1 done 2", "2 done 3 1", "3 pending 1", "4 pending 3", "8 pending 9", "9 pending 8"];
    assert_eq!(
        wrong(&lines),
        [
            "tasks wait for each other in a cycle: 1 -> 2 -> 1",
            "tasks wait for each other in a cycle: 8 -> 9 -> 8"
        ]
    );
    let inherited = ["1 expanded 2", "1.1 pending", "2 pending 1.1"];
    assert_eq!(wrong(&inherited), ["tasks wait for each other in a cycle: 1.1 -> 1 -> 2 -> 1.1"]);
    let inside = ["1 pending 1.1", "1.1 pending", "1.2 pending 1"];
    assert_eq!(wrong(&inside), ["tasks wait for each other in a cycle: 1 -> 1.2 -> 1"]);
}

#[test]
fn a_task_that_is_a_part_of_itself_is_an_error() {
    let mut tasks = tasks(&["1 pending", "2 pending", "3 pending 1"]);
    tasks[0].parent = Some("2".parse().unwrap());
    tasks[1].parent = Some("1".parse().unwrap());
    let (_, problems) = Graph::build(tasks);
    assert_eq!(problems[0].to_string(), "a task is a part of itself: 1 -> 2 -> 1");
    assert!(problems[0].is_error());
}

#[test]
fn an_odd_task_is_a_warning() {
    let mut tasks = tasks(&["1 pending", "2 expanded", "3 pending", "4 done"]);
    tasks[0].complexity = 4;
    tasks[2].verification = Some("make check".to_owned());
    let (graph, problems) = Graph::build(tasks);
    let problems: Vec<_> = problems.into_iter().chain(graph.unverified()).collect();
    let told: Vec<_> = problems.iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        [
            "task 1 has complexity 4; SCUD knows 0 and Fibonacci's numbers up to 89",
            "task 2 is expanded, but has no subtasks: nothing is done in its place",
            "nothing would prove task 1 done: give --verify CMD",
        ]
    );
    assert!(problems.iter().all(|problem| !problem.is_error()));
}

#[test]
fn a_long_chain_and_a_ring_of_many_tasks_are_no_trouble() {
    let count = 50_000;
    let name = |at: usize| at.to_string().parse::<TaskId>().unwrap();
    let mut chain: Vec<_> = (0..count).map(|at| Task::new(name(at), String::new())).collect();
    for (at, task) in chain.iter_mut().enumerate().skip(1) {
        task.dependencies = vec![name(at - 1)];
    }
    let (graph, problems) = Graph::build(chain.clone());
    assert_eq!((graph.waves().len(), problems.len()), (count, 0));
    chain[0].dependencies = vec![name(count - 1)];
    assert_eq!(Graph::build(chain.clone()).1[0].tasks().len(), count);
    for (at, task) in chain.iter_mut().enumerate().skip(1) {
        (task.dependencies, task.parent) = (Vec::new(), Some(name(at - 1)));
    }
    chain[0].dependencies.clear();
    assert_eq!(Graph::build(chain).0.waves().len(), count);
}

/// Whether `on` is, by what the words say and nothing else, to be done before `task`.
fn comes_before(tasks: &[Task], task: usize, on: usize) -> bool {
    let by_id = |id: &TaskId| tasks.iter().position(|task| task.id == *id);
    let mut left = vec![task];
    // Its own dependencies, and those of all that it is a part of.
    let mut whole = task;
    while let Some(parent) = tasks[whole].parent.as_ref().and_then(by_id) {
        left.push(parent);
        whole = parent;
    }
    let named = left.iter().flat_map(|it| tasks[*it].dependencies.iter().filter_map(by_id));
    let parts = (0..tasks.len()).filter(|it| tasks[*it].parent.as_ref() == Some(&tasks[task].id));
    let is_expanded = |it: usize| tasks[it].status == TaskStatus::Expanded;
    let mut direct: Vec<usize> = named.chain(parts).collect();
    while let Some(it) = direct.pop() {
        if it == on && !is_expanded(it) {
            return true;
        }
        if is_expanded(it) {
            direct
                .extend((0..tasks.len()).filter(|part| tasks[*part].parent.as_ref() == Some(&tasks[it].id)));
        }
    }
    false
}

prop_compose! {
    /// Plans without cycles, as a task comes after all that it depends on, and with parts of up to two levels.
    fn plans()(rows in prop::collection::vec((0..12_usize, prop::collection::vec(any::<prop::sample::Index>(), 0..3), 0..4_usize), 1..14)) -> Vec<Task> {
        let mut tasks: Vec<Task> = Vec::new();
        for (at, (parent, dependencies, status)) in rows.into_iter().enumerate() {
            let whole = tasks.get(parent).filter(|whole| whole.status == TaskStatus::Expanded).map(|whole| whole.id.clone());
            let name = match &whole {
                Some(whole) => format!("{whole}.{at}"),
                None => at.to_string(),
            };
            let mut task = Task::new(name.parse().unwrap(), String::new());
            task.status = [TaskStatus::Pending, TaskStatus::Expanded, TaskStatus::InProgress, TaskStatus::Pending][status];
            // Only on top-level tasks, else parts might wait for their own whole.
            let others: Vec<_> = tasks.iter().filter(|other| other.parent.is_none() && other.status != TaskStatus::Expanded).collect();
            if whole.is_none() && !others.is_empty() {
                task.dependencies = dependencies.iter().map(|index| index.get(&others).id.clone()).collect();
            }
            task.parent = whole;
            tasks.push(task);
        }
        tasks
    }
}

proptest! {
    #[test]
    fn the_graph_agrees_with_a_simple_model(tasks in plans()) {
        let (graph, problems) = Graph::build(tasks.clone());
        prop_assert!(problems.iter().all(|problem| !problem.is_error()), "{:?}", problems);
        for task in 0..tasks.len() {
            if graph.standing(task) != TaskReadiness::ToDo {
                continue;
            }
            let expected: Vec<_> = (0..tasks.len())
                .filter(|on| graph.standing(*on) == TaskReadiness::ToDo && comes_before(&tasks, task, *on))
                .collect();
            let found: Vec<_> = graph.dependencies(task).into_iter()
                .filter(|on| graph.standing(*on) == TaskReadiness::ToDo).collect();
            prop_assert_eq!(&found, &expected);
            let wave = graph.wave_of(task).unwrap();
            let behind = expected.iter().map(|on| graph.wave_of(*on).unwrap() + 1).max().unwrap_or_default();
            prop_assert_eq!(wave, behind, "a task is in the first wave that it can be in");
            for on in found {
                prop_assert!(graph.dependents(on).contains(&task));
                prop_assert!(graph.rank(on) > graph.rank(task));
            }
            for by in graph.dependents(task).into_iter().filter(|by| graph.standing(*by) == TaskReadiness::ToDo) {
                prop_assert!(graph.dependencies(by).contains(&task));
            }
        }
    }

    #[test]
    fn no_input_is_too_wild(rows in prop::collection::vec((0..9_u8, prop::collection::vec(0..9_u8, 0..4), prop::option::of(0..9_u8), 0..10_usize), 0..12)) {
        let name = |number: u8| number.to_string().parse::<TaskId>().unwrap();
        let tasks = rows.into_iter().map(|(id, on, parent, status)| {
            let mut task = Task::new(name(id), String::new());
            task.dependencies = on.into_iter().map(name).collect();
            (task.parent, task.status) = (parent.map(name), TaskStatus::ALL[status]);
            task
        }).collect();
        let (graph, problems) = Graph::build(tasks);
        let in_waves: usize = graph.waves().iter().map(Vec::len).sum();
        if problems.iter().all(|problem| !problem.is_error()) {
            prop_assert_eq!(in_waves, graph.to_do());
        }
        for task in 0..graph.tasks().len() {
            prop_assert!(!graph.dependencies(task).contains(&usize::MAX));
            prop_assert!(!graph.dependents(task).contains(&usize::MAX));
        }
    }
}
