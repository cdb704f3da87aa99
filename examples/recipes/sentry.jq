# An envelope of Sentry from `unwindd stack --format json`, three lines:
#   unwindd stack core --format json | jq -c --arg id "$(tr -d - < /proc/sys/kernel/random/uuid)" -f sentry.jq
def text: if . == null or . == "" then null else . end;

# Sentry wants the outermost frame first.
def stacktrace($paths): {frames: [.frames | reverse[] | {
    function: (.function | text), instruction_addr: .pc, package: $paths[.module // -1 | tostring],
    abs_path: (.file | text), filename: (.file | text | if . then split("/") | last else . end), lineno: .line, colno: .column
  } | with_entries(select(.value != null))]} | select(.frames != []);

(.modules | map({key: (.id | tostring), value: .path}) | from_entries) as $paths
| .target as $target
| ([.threads[] | select(.crashed)] | first) as $crashed
| {event_id: $id}, {type: "event"}, ({
    event_id: $id, platform: "other", level: "fatal", logger: "unwindd",
    exception: {values: [{
      type: ($target.crash.name // "signal \($target.signal)"), value: ($target.fact | text),
      thread_id: $crashed.id, stacktrace: ($crashed | if . then stacktrace($paths) else null end),
      mechanism: {type: "core", handled: false}
    }]},
    threads: {values: [.threads[] | {
      id, name: (.name | text), crashed, current: (.id == $crashed.id)
    } + if .id == $crashed.id then {} else {stacktrace: stacktrace($paths)} end]},
    # Crashes are one issue if unwindd has one signature for them.
    fingerprint: (if $crashed.signature.signature then [$crashed.signature.signature] else ["{{ default }}"] end),
    tags: {executable: $target.process.executable}
  } | walk(if type == "object" then with_entries(select(.value != null)) else . end))
