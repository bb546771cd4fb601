//! The OpenAPI description, generated from the table of routes.

use axum::Json;
use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::failure::{CODES, Failure};
use super::routes::{BASE, ResponseKind, Route, table};

/// The description: OpenAPI 3.1.
#[must_use]
pub fn openapi() -> Value {
    let settings =
        SchemaSettings::draft2020_12().with(|it| it.definitions_path = "/components/schemas".into());
    let mut generator = settings.into_generator();
    let failure = generator.subschema_for::<Failure>().to_value();
    let mut paths = Map::new();
    for route in table() {
        let operation = operation(&route, &mut generator, &failure);
        let path = paths.entry(format!("{BASE}{}", route.path)).or_insert_with(|| json!({}));
        path[route.method] = operation;
    }
    let schemas = generator.take_definitions(true);
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Refrain",
            "version": "1",
            "description": "Loops and plans of this machine: what refrain serve answers to programs.",
        },
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    })
}

pub(super) async fn description() -> Json<Value> {
    Json(openapi())
}

fn operation(route: &Route, generator: &mut SchemaGenerator, failure: &Value) -> Value {
    let names = route.path.split('{').skip(1).filter_map(|part| part.split_once('}')).map(|(name, _)| name);
    let in_path =
        |name: &str| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}});
    let mut parameters: Vec<_> = names.map(in_path).collect();
    if let Some(query) = route.query {
        parameters.extend(in_query(&inlined(query, generator)));
    }
    let (mime, schema) = match &route.answer {
        ResponseKind::Json(make) => ("application/json", make(generator).to_value()),
        ResponseKind::Text(mime) => (*mime, json!({"type": "string"})),
    };
    let mut operation = json!({
        "summary": route.says,
        "responses": {
            "200": {"description": "It was done.", "content": {mime: {"schema": schema}}},
            "default": {
                "description": format!("It was not: {}.", statuses()),
                "content": {"application/json": {"schema": failure}},
            },
        },
    });
    if !parameters.is_empty() {
        operation["parameters"] = json!(parameters);
    }
    if let Some(body) = route.body {
        let schema = body(generator).to_value();
        operation["requestBody"] = json!({"content": {"application/json": {"schema": schema}}});
    }
    operation
}

fn statuses() -> String {
    CODES.map(|(status, code)| format!("{status} {code}")).join(", ")
}

/// The schema of the query parameters itself, not a reference to it.
fn inlined(make: fn(&mut SchemaGenerator) -> schemars::Schema, generator: &mut SchemaGenerator) -> Value {
    let named = make(generator).to_value();
    let name = named["$ref"].as_str().and_then(|path| path.rsplit('/').next()).unwrap_or_default();
    generator.definitions_mut().remove(name).unwrap_or(named)
}

fn in_query(schema: &Value) -> Vec<Value> {
    let properties = schema["properties"].as_object().cloned().unwrap_or_default();
    let parameter = |(name, schema): (String, Value)| json!({"name": name, "in": "query", "description": schema["description"], "schema": schema});
    properties.into_iter().map(parameter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn openapi_describes_every_route_and_every_schema_that_it_uses() {
        let all = openapi();
        for route in table() {
            let operation = &all["paths"][format!("{BASE}{}", route.path)][route.method];
            assert_eq!(operation["summary"], route.says);
        }
        let text = all.to_string();
        for name in text.split("#/components/schemas/").skip(1).filter_map(|rest| rest.split('"').next()) {
            assert!(all["components"]["schemas"][name].is_object(), "{name}");
        }
        let find = &all["paths"]["/api/v1/loops"]["get"]["parameters"];
        assert!(find.as_array().unwrap().iter().any(|it| it["name"] == "status"), "{find:#}");
    }
}
