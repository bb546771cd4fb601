use spans::{human, parse, Error};

#[test]
fn a_single_part_is_parsed() {
    assert_eq!(parse("90s"), Ok(90));
    assert_eq!(parse("2d"), Ok(172_800));
}

#[test]
fn all_parts_count() {
    assert_eq!(parse("1h30m"), Ok(5_400), "half of it is gone");
}

#[test]
fn an_invalid_span_is_refused() {
    assert_eq!(parse("1y"), Err(Error::Unit('y')));
    assert_eq!(parse("10"), Err(Error::Incomplete));
    assert_eq!(parse(""), Err(Error::Incomplete));
}

#[test]
fn no_time_is_no_seconds() {
    assert_eq!(human(0), "0s", "a span has a unit");
}

#[test]
fn a_written_span_can_be_parsed() {
    for seconds in [1, 59, 3_600, 86_399] {
        assert_eq!(parse(&human(seconds)), Ok(seconds));
    }
}
