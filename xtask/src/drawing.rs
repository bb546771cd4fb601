//! `docs/architecture.svg`: the crates of the product and which uses which, drawn from the manifests.
//!
//! A crate stands one layer above the highest one that it uses. An arrow that others imply is omitted; one that passes
//! a layer has a place of its own there, so that it crosses no box.

use std::collections::{BTreeMap, BTreeSet};

use crate::workspace::Workspace;

/// Crates that are no part of the product.
const TOOLS: &[&str] = &["testkit", "xtask"];

const BOX: (usize, usize) = (136, 36);
const LAYER: usize = 92;
/// The room that a box takes, and an arrow that passes beside boxes.
const BOX_ROOM: usize = BOX.0 + 28;
const ARROW_ROOM: usize = 36;
const MARGIN: usize = 12;

/// How often the layers are arranged, upwards and downwards in turn.
const ROUNDS: usize = 12;

const STYLE: &str = "text{font:14px system-ui,sans-serif;text-anchor:middle;dominant-baseline:central;fill:#1f2328}\
rect{fill:#eef3f8;stroke:#57708c}path{fill:none;stroke:#7d8590;stroke-width:1.4}marker path{fill:#7d8590;stroke:none}\
@media(prefers-color-scheme:dark){text{fill:#e6edf3}rect{fill:#1c2733;stroke:#8fa9c4}}";

/// Which crates each one uses.
type Arrows<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

/// A member of a layer: a crate, or an arrow that passes the layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Item<'a> {
    Crate(&'a str),
    Passing(&'a str, &'a str, usize),
}

/// The items of each layer from left to right, the lowest layer first.
type Layers<'a> = Vec<Vec<Item<'a>>>;

/// The start and the end of a line between two items.
type Line = ((usize, usize), (usize, usize));

type Places<'a> = BTreeMap<Item<'a>, (usize, usize)>;

pub(crate) fn svg(workspace: &Workspace) -> String {
    let arrows = reduced(&arrows(workspace));
    let ways = ways(&arrows);
    let layers = arranged(&arrows, &ways);
    let (width, places) = places(&layers);
    let height = (layers.len() * LAYER + 2 * MARGIN + BOX.1).saturating_sub(LAYER);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" role=\"img\">
<title>The crates of Refrain and which uses which</title>
<style>{STYLE}</style>
<marker id=\"end\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" orient=\"auto\"><path d=\"M0 0 8 4 0 8z\"/></marker>
"
    );
    for way in &ways {
        svg += &format!("<path d=\"{}\" marker-end=\"url(#end)\"/>\n", line(way, &places));
    }
    for (item, (x, y)) in &places {
        if let Item::Crate(name) = item {
            let (left, top, (width, height)) = (x - BOX.0 / 2, y - BOX.1 / 2, BOX);
            svg += &format!(
                "<rect x=\"{left}\" y=\"{top}\" width=\"{width}\" height=\"{height}\" rx=\"6\"/><text x=\"{x}\" y=\"{y}\">{name}</text>\n"
            );
        }
    }
    svg + "</svg>\n"
}

fn arrows(workspace: &Workspace) -> Arrows<'_> {
    let packages = workspace.packages.iter().filter(|package| !TOOLS.contains(&package.name.as_str()));
    let names: BTreeSet<&str> = packages.clone().map(|package| package.name.as_str()).collect();
    packages
        .map(|package| {
            let used = package.dependencies.iter().filter(|dependency| !dependency.for_tests);
            let used = used.map(|dependency| dependency.name.as_str()).filter(|name| names.contains(name));
            (package.name.as_str(), used.collect())
        })
        .collect()
}

/// The arrows that no way over another crate implies.
fn reduced<'a>(arrows: &Arrows<'a>) -> Arrows<'a> {
    let is_implied = |from: &str, to: &str| {
        arrows[from].iter().any(|between| *between != to && reaches(arrows, between, to))
    };
    arrows
        .iter()
        .map(|(from, used)| (*from, used.iter().copied().filter(|to| !is_implied(from, to)).collect()))
        .collect()
}

fn reaches(arrows: &Arrows<'_>, from: &str, to: &str) -> bool {
    arrows[from].iter().any(|used| *used == to || reaches(arrows, used, to))
}

/// How many crates are below this one, on the longest way.
fn height(arrows: &Arrows<'_>, name: &str) -> usize {
    arrows[name].iter().map(|used| height(arrows, used) + 1).max().unwrap_or(0)
}

/// Each arrow as the items that it connects, from its crate downwards.
fn ways<'a>(arrows: &Arrows<'a>) -> Vec<Vec<Item<'a>>> {
    let arrows_of = arrows.iter().flat_map(|(from, used)| used.iter().map(move |to| (*from, *to)));
    arrows_of
        .map(|(from, to)| {
            let passed = (height(arrows, to) + 1..height(arrows, from)).rev();
            let passed = passed.map(|layer| Item::Passing(from, to, layer));
            std::iter::once(Item::Crate(from)).chain(passed).chain([Item::Crate(to)]).collect()
        })
        .collect()
}

/// The layers, each in an order in which few arrows cross: an item is near the middle of its neighbours.
fn arranged<'a>(arrows: &Arrows<'a>, ways: &[Vec<Item<'a>>]) -> Layers<'a> {
    let layer_of = |item: &Item<'_>| match item {
        Item::Crate(name) => height(arrows, name),
        Item::Passing(_, _, layer) => *layer,
    };
    let items: BTreeSet<Item<'a>> =
        arrows.keys().map(|name| Item::Crate(name)).chain(ways.iter().flatten().copied()).collect();
    let mut layers = Layers::new();
    for item in items {
        let layer = layer_of(&item);
        layers.resize(layers.len().max(layer + 1), Vec::new());
        layers[layer].push(item);
    }
    let links: Vec<(Item<'a>, Item<'a>)> =
        ways.iter().flat_map(|way| way.windows(2)).map(|pair| (pair[0], pair[1])).collect();
    let mut best = (effort(&layers, &links), layers.clone());
    for round in 0..ROUNDS {
        let is_upward = round % 2 == 0;
        for step in 0..layers.len() {
            let layer = if is_upward { step } else { layers.len() - 1 - step };
            let (_, places) = places(&layers);
            layers[layer].sort_by_cached_key(|item| {
                let neighbours = links.iter().filter_map(|(high, low)| match is_upward {
                    true => (high == item).then_some(low),
                    false => (low == item).then_some(high),
                });
                let there: Vec<usize> = neighbours.map(|neighbour| places[neighbour].0).collect();
                there.iter().sum::<usize>().checked_div(there.len()).unwrap_or(places[item].0)
            });
        }
        let now = effort(&layers, &links);
        if now < best.0 {
            best = (now, layers.clone());
        }
    }
    best.1
}

/// How hard a drawing is to follow: how many of its lines cross, then how far they go sideways.
fn effort<'a>(layers: &Layers<'a>, links: &[(Item<'a>, Item<'a>)]) -> (usize, usize) {
    let (_, places) = places(layers);
    let lines: Vec<_> = links.iter().map(|(high, low)| (places[high], places[low])).collect();
    let cross = |((a, a_top), (b, _)): &Line, ((c, c_top), (d, _)): &Line| a_top == c_top && a < c && b > d;
    let crossings = lines.iter().map(|a| lines.iter().filter(|b| cross(a, b)).count()).sum();
    (crossings, lines.iter().map(|((x, _), (to_x, _))| x.abs_diff(*to_x)).sum())
}

/// The width of the drawing, and the places of the items: every layer is centred.
fn places<'a>(layers: &Layers<'a>) -> (usize, Places<'a>) {
    let room = |item: &Item<'_>| match item {
        Item::Crate(_) => BOX_ROOM,
        Item::Passing(..) => ARROW_ROOM,
    };
    let width_of = |layer: &Vec<Item<'_>>| layer.iter().map(room).sum::<usize>();
    let width = layers.iter().map(width_of).max().unwrap_or(0) + 2 * MARGIN;
    let mut places = Places::new();
    for (from_top, layer) in layers.iter().rev().enumerate() {
        let mut left = (width - width_of(layer)) / 2;
        for item in layer {
            places.insert(*item, (left + room(item) / 2, MARGIN + BOX.1 / 2 + from_top * LAYER));
            left += room(item);
        }
    }
    (width, places)
}

/// The line of an arrow: a bend between two layers, straight where it passes one.
fn line(way: &[Item<'_>], places: &Places<'_>) -> String {
    let mut line = String::new();
    for pair in way.windows(2) {
        let ((x, above), (to_x, below)) = (places[&pair[0]], places[&pair[1]]);
        let (y, to_y) = (above + BOX.1 / 2, below - BOX.1 / 2);
        let bend = (y + to_y) / 2;
        let begin = if line.is_empty() { 'M' } else { 'L' };
        line += &format!("{begin}{x} {y}C{x} {bend} {to_x} {bend} {to_x} {to_y}");
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrows<'a>(map: &[(&'a str, &[&'a str])]) -> Arrows<'a> {
        map.iter().map(|(name, used)| (*name, used.iter().copied().collect())).collect()
    }

    #[test]
    fn an_implied_arrow_is_omitted() {
        let map = arrows(&[("a", &["b", "c", "d"]), ("b", &["c"]), ("c", &["d"]), ("d", &[])]);
        assert_eq!(reduced(&map), arrows(&[("a", &["b"]), ("b", &["c"]), ("c", &["d"]), ("d", &[])]));
    }

    #[test]
    fn a_crate_stands_above_all_that_it_uses_and_no_arrow_goes_through_a_box() {
        let map = arrows(&[("a", &["b", "d"]), ("b", &["c"]), ("c", &[]), ("d", &[])]);
        let ways = ways(&map);
        let layers = arranged(&map, &ways);
        assert_eq!(layers[2], [Item::Crate("a")]);
        assert_eq!(layers[1].iter().collect::<BTreeSet<_>>().len(), 2);
        assert!(layers[1].contains(&Item::Passing("a", "d", 1)));
        let (width, places) = places(&layers);
        assert!(places.values().all(|(x, _)| *x < width));
        assert_eq!(places.values().collect::<BTreeSet<_>>().len(), 5, "each has a place of its own");
    }

    #[test]
    fn arrows_that_need_not_cross_do_not() {
        let map = arrows(&[("a", &["z"]), ("b", &["y"]), ("y", &[]), ("z", &[])]);
        let layers = arranged(&map, &ways(&map));
        let order = |layer: &[Item<'_>], name| layer.iter().position(|item| *item == Item::Crate(name));
        assert_eq!(order(&layers[1], "a"), order(&layers[0], "z"));
    }

    #[test]
    fn tools_and_crates_for_tests_are_not_drawn() {
        let text = r#"{"workspace_root":"/r","target_directory":"/r/t","packages":[
            {"name":"a","manifest_path":"/r/a","targets":[],"dependencies":[{"name":"b","kind":null},{"name":"c","kind":"dev"},{"name":"serde","kind":null}]},
            {"name":"b","manifest_path":"/r/b","targets":[],"dependencies":[]},
            {"name":"c","manifest_path":"/r/c","targets":[],"dependencies":[]},
            {"name":"testkit","manifest_path":"/r/t","targets":[],"dependencies":[]}]}"#;
        let workspace = Workspace::parse(text).unwrap();
        assert_eq!(super::arrows(&workspace), arrows(&[("a", &["b"]), ("b", &[]), ("c", &[])]));
        let svg = svg(&workspace);
        assert!(svg.contains(">a</text>") && svg.matches("marker-end").count() == 1, "{svg}");
    }
}
