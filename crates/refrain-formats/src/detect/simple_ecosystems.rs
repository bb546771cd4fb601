//! Ecosystems that one manifest and one command describe. A folder below another of the same ecosystem belongs to that
//! one: its runner knows its modules.

use super::draft::Draft;
use super::listing::{Listing, contains, has_line, join, split};

struct Ecosystem {
    /// Whether a file of this name makes a folder a project.
    is_manifest: fn(&str) -> bool,
    /// Whether a path below the folder is a test. If there is none, no gate is offered.
    is_test: fn(&str) -> bool,
    gates: fn(&mut Draft<'_>, &str),
    protect: &'static [&'static str],
    tests: &'static [&'static str],
}

const ALL: &[Ecosystem] = &[
    Ecosystem {
        is_manifest: |name| {
            matches!(name, "settings.gradle" | "settings.gradle.kts" | "build.gradle" | "build.gradle.kts")
        },
        is_test: is_in_source_set,
        gates: |draft, folder| {
            let program = if draft.listing.has(folder, "gradlew") { "sh gradlew" } else { "gradle" };
            draft.test(folder, "gradle-test", format!("{program} --console=plain test"));
        },
        protect: &[
            "**/gradlew",
            "**/gradle/wrapper/**",
            "**/gradle.properties",
            "**/settings.gradle",
            "**/settings.gradle.kts",
            "**/junit-platform.properties",
            "**/checkstyle.xml",
            "**/detekt.yml",
        ],
        tests: &["**/src/*[tT]est*/**"],
    },
    Ecosystem {
        is_manifest: |name| name == "pom.xml",
        is_test: is_in_source_set,
        gates: |draft, folder| {
            let program = if draft.listing.has(folder, "mvnw") { "sh mvnw" } else { "mvn" };
            draft.test(folder, "maven-test", format!("{program} -B test"));
        },
        protect: &["**/mvnw", "**/.mvn/**", "**/junit-platform.properties", "**/checkstyle.xml"],
        tests: &["**/src/*[tT]est*/**"],
    },
    Ecosystem {
        is_manifest: |name| DOTNET.contains(&split_extension(name).1),
        is_test: |path| {
            let (stem, extension) = split_extension(path);
            let is_named_so = ["test", "tests", "Test", "Tests"].iter().any(|end| stem.ends_with(end));
            is_named_so && (DOTNET.contains(&extension) || matches!(extension, "cs" | "fs" | "vb"))
        },
        gates: |draft, folder| draft.test(folder, "dotnet-test", "dotnet test"),
        protect: &[
            "**/global.json",
            "**/*.runsettings",
            "**/Directory.Build.*",
            "**/nuget.config",
            "**/xunit.runner.json",
        ],
        tests: &["**/*.Tests/**", "**/*.Test/**", "**/*Tests.cs", "**/*Test.cs", "**/*Tests.fs"],
    },
    Ecosystem {
        is_manifest: |name| name == "mix.exs",
        is_test: |path| path.ends_with("_test.exs"),
        gates: |draft, folder| {
            draft.test(folder, "mix-test", "mix test");
            if draft.listing.has(folder, ".formatter.exs") {
                draft.lint(folder, "mix-format", "mix format --check-formatted");
            }
            if draft.listing.has(folder, ".credo.exs") {
                draft.lint(folder, "mix-credo", "mix credo");
            }
        },
        protect: &["**/test_helper.exs", "**/.formatter.exs", "**/.credo.exs", "**/config/test.exs"],
        tests: &["**/*_test.exs", "**/test/**"],
    },
    Ecosystem {
        is_manifest: |name| matches!(name, "Gemfile" | "Rakefile" | ".rspec") || name.ends_with(".gemspec"),
        is_test: |path| is_spec(path) || is_unit_test(path),
        gates: ruby,
        protect: &[
            "**/.rspec",
            "**/spec_helper.rb",
            "**/rails_helper.rb",
            "**/test_helper.rb",
            "**/Rakefile",
            "**/.rubocop*.yml",
            "**/.simplecov",
        ],
        tests: &["**/spec/**", "**/test/**"],
    },
    Ecosystem {
        is_manifest: |name| matches!(name, "composer.json" | "phpunit.xml" | "phpunit.xml.dist"),
        is_test: |path| path.ends_with("Test.php") || (path.ends_with(".php") && has_folder(path, "tests")),
        gates: php,
        protect: &[
            "**/phpunit.xml",
            "**/phpunit.xml.dist",
            "**/phpunit.dist.xml",
            "**/phpstan*.neon",
            "**/phpstan*.neon.dist",
            "**/.php-cs-fixer*.php",
            "**/psalm.xml",
            "**/pest.php",
        ],
        tests: &["**/*Test.php", "**/tests/**"],
    },
    Ecosystem {
        is_manifest: |name| name == "CMakeLists.txt",
        // CMake declares its tests, under any file name.
        is_test: |_| true,
        gates: ctest,
        protect: &["**/CTestConfig.cmake", "**/CTestCustom.*", "**/.clang-tidy", "**/.clang-format"],
        tests: &["**/test/**", "**/tests/**"],
    },
    Ecosystem {
        is_manifest: |name| name == "Package.swift",
        is_test: |path| path.ends_with(".swift") && has_folder(path, "Tests"),
        gates: |draft, folder| draft.test(folder, "swift-test", "swift test"),
        protect: &["**/Package.swift", "**/.swiftlint.yml", "**/*.xctestplan"],
        tests: &["**/Tests/**"],
    },
    Ecosystem {
        is_manifest: |name| name == "build.zig",
        is_test: |path| path.ends_with(".zig"),
        // On success it says nothing unless it is asked to.
        gates: |draft, folder| draft.test(folder, "zig-test", "zig build test --summary all"),
        protect: &["**/build.zig"],
        tests: &["**/test/**", "**/tests/**"],
    },
    Ecosystem {
        is_manifest: |name| matches!(name, "MODULE.bazel" | "WORKSPACE" | "WORKSPACE.bazel"),
        is_test: |_| true,
        gates: |draft, folder| draft.test(folder, "bazel-test", "bazel test //..."),
        protect: &["**/.bazelrc", "**/.bazelversion"],
        tests: &["**/test/**", "**/tests/**"],
    },
];

pub(super) fn detect(draft: &mut Draft<'_>) {
    for ecosystem in ALL {
        let mut roots: Vec<&str> = Vec::new();
        for folder in draft.listing.folders(ecosystem.is_manifest) {
            if !roots.iter().any(|root| contains(root, folder)) {
                roots.push(folder);
            }
        }
        roots.retain(|folder| draft.listing.below(folder, &[]).any(ecosystem.is_test));
        for folder in &roots {
            (ecosystem.gates)(draft, folder);
        }
        if !roots.is_empty() {
            draft.protect(ecosystem.protect);
            draft.protect_existing(ecosystem.tests);
        }
    }
}

const DOTNET: &[&str] = &["sln", "slnx", "csproj", "fsproj", "vbproj"];

fn split_extension(path: &str) -> (&str, &str) {
    path.rsplit_once('.').unwrap_or((path, ""))
}

fn has_folder(path: &str, name: &str) -> bool {
    split(path).0.split('/').any(|part| part == name)
}

/// `src/test`, `src/integrationTest`, `src/androidTest` …
fn is_in_source_set(path: &str) -> bool {
    let parts = || split(path).0.split('/');
    let is_tests = |part: &str| part.contains("test") || part.contains("Test");
    parts().zip(parts().skip(1)).any(|(source, set)| source == "src" && is_tests(set))
}

fn is_spec(path: &str) -> bool {
    path.ends_with("_spec.rb")
}

fn is_unit_test(path: &str) -> bool {
    path.ends_with("_test.rb") || (split(path).1.starts_with("test_") && path.ends_with(".rb"))
}

fn ruby(draft: &mut Draft<'_>, folder: &str) {
    let listing = draft.listing;
    let bundle = if listing.has(folder, "Gemfile") { "bundle exec " } else { "" };
    if listing.below(folder, &[]).any(is_spec) {
        draft.test(folder, "rspec", format!("{bundle}rspec"));
    }
    if listing.below(folder, &[]).any(is_unit_test) {
        if listing.has(folder, "bin/rails") {
            draft.test(folder, "rails-test", "ruby bin/rails test");
        } else if listing.has(folder, "Rakefile") {
            draft.test(folder, "rake-test", format!("{bundle}rake test"));
        }
    }
    if listing.has(folder, ".rubocop.yml") {
        draft.lint(folder, "rubocop", format!("{bundle}rubocop"));
    }
}

fn php(draft: &mut Draft<'_>, folder: &str) {
    let listing = draft.listing;
    let json: serde_json::Value = listing
        .text(folder, "composer.json")
        .and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default();
    if !json["scripts"]["test"].is_null() {
        draft.test(folder, "composer-test", "composer test");
        draft.protect_part(folder, "composer.json", &["scripts"], &[]);
    } else {
        draft.test(folder, "phpunit", "php vendor/bin/phpunit");
    }
    if listing.first(folder, &["phpstan.neon", "phpstan.neon.dist"]).is_some() {
        draft.lint(folder, "phpstan", "php vendor/bin/phpstan analyse");
    }
}

fn ctest(draft: &mut Draft<'_>, folder: &str) {
    let declares = |listing: &Listing| {
        let text = listing.text(folder, "CMakeLists.txt").unwrap_or_default();
        has_line(
            text,
            r"^\s*(?:enable_testing|ENABLE_TESTING)\s*\(|^\s*(?:include|INCLUDE)\s*\(\s*CTest\s*\)",
        )
    };
    if declares(draft.listing) {
        draft.test(
            folder,
            "ctest",
            "cmake -S . -B build && cmake --build build && ctest --test-dir build --output-on-failure --no-tests=error",
        );
        draft.note(format!("ctest builds in {}: let git ignore it", join(folder, "build")));
    }
}
