// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/unwindd/unwindd/internal/oracle"
)

// TestWrongConfigurationIsNamedWithItsLine: the key, the line, and what is
// expected; nothing of how it is read here.
func TestWrongConfigurationIsNamedWithItsLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.toml")
	for _, c := range []struct{ text, want string }{
		{"[plugins]\n\ndir = []\n", `:3: there is no setting "plugins.dir", expected dirs, pins, pinned_only, disabled or replace`},
		{"\n[plugin]\ndirs = []\n", `:2: there is no setting "plugin", expected [plugins], [serve], [stack], [profile], [symbols] or disassembler`},
		{"x = 1\n[plugins]\ny = 2\n", ":1: there is no setting \"x\", expected [plugins], [serve], [stack], [profile], [symbols] or disassembler\nPATH:3: there is no setting \"plugins.y\", expected dirs, pins, pinned_only, disabled or replace"},
		{"[plugins]\ndirs = \"/x\"\n", ":2: plugins.dirs: expected a list of strings"},
		{"[plugins]\ndirs = [\n\"/x\",\n3]\n", ":4: plugins.dirs: expected a list of strings"},
		{"[plugins]\npins = { a = 3 }\n", ":2: plugins.pins: expected a table of strings: the SHA-256 of each plugin by its name"},
		{"[plugins.pins]\na = \"\"\nb = true\n", ":3: plugins.pins: expected a table of strings: the SHA-256 of each plugin by its name"},
		{"plugins = 3\n", ":1: plugins: expected a table with dirs, pins, pinned_only, disabled or replace"},
		{"disassembler = [\"/x\"]\n", ":1: disassembler: expected a string: the path of an llvm-mc, llvm-objdump or nvdisasm"},
		{"[[plugins]]\n", ":1: plugins: expected a table with dirs, pins, pinned_only, disabled or replace"},
		{"[plugins]\ndirs = []\ndirs = []\n", ":3:1: key dirs is already defined"},
		{"\n[plugins\n", ":2:9: expected ']' to close table name"},
	} {
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := (&globals{config: path}).settings()
		if err == nil {
			t.Errorf("%q is read", c.text)
			continue
		}
		want := path + strings.ReplaceAll(c.want, "PATH", path)
		if err.Error() != want {
			t.Errorf("%q: %s\nexpected %s", c.text, err, want)
		}
	}
}

// writeConfig writes a configuration file.
func writeConfig(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestWrongValuesOfFlagsAreNamedWithTheirLines: the file's line, and the values that the flag takes.
func TestWrongValuesOfFlagsAreNamedWithTheirLines(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"[stack]\ntop = 0\n", ":2: stack.top: --top 0: expected 1 or more"},
		{"[stack]\ntop = 'ten'\n", ":2: stack.top: expected a number"},
		{"[stack]\n\"max-unpacked\" = \"many\"\n", ":2: stack.max-unpacked: expected bytes, as 500M or 200G"},
		{"[stack]\nglobals = [\n\"a\",\n3]\n", ":2: stack.globals: expected a list of strings"},
		{"[profile]\nroot = [\"1=/\", \"x\"]\n", ":2: profile.root: expected the number of a process, =, and a directory"},
		{"x = { y = 1 }\n[profile]\nnone = 1\n", `:1: there is no setting "x"`},
		{"[profile]\njobs = 3\nevery = 3\n", `:3: profile.every: expected a string with a duration, as "90s" or "2m"`},
		{"[profile]\nnone = 3\n", `:2: there is no setting "profile.none", expected annotate, bottom-up, buildid-dir, callers, color, cpu, debug-dir,`},
		{"stack = { top = 1, none = 3 }\n", `:1: there is no setting "stack.none"`},
		{"[symbols]\n\nexe = 'a'\n", `:3: there is no setting "symbols.exe", expected buildid-dir, debug-dir, debuginfod, symbols or sysroot`},
		{"[symbols]\nsymbols = true\n", ":2: symbols.symbols: expected a list of strings"},
		{"[stack]\noutput = 'a'\n", `:2: there is no setting "stack.output"`},
		{"[stack]\nconfig = 'a'\n", `:2: there is no setting "stack.config"`},
		{"[serve]\ncheck = true\n", `:2: there is no setting "serve.check"`},
		{"[stack]\na = 1\ntop = 0\n[profile]\nb = 1\n", `:2: there is no setting "stack.a", expected `},
		{"stack = 3\n", ":1: stack: expected a table of settings that have the names of flags"},
		{"[stack.top]\nx = 3\n", ":1: stack.top: expected a number"},
	} {
		path := writeConfig(t, c.text)
		if _, err := (&globals{config: path}).settings(); err == nil || !strings.HasPrefix(err.Error(), path+c.want) {
			t.Errorf("%q: %v\nexpected %s", c.text, err, c.want)
		}
	}
	path := writeConfig(t, "[stack]\ntop = 0\n[symbols]\na = 1\n[profile]\nb = 1\n")
	_, err := (&globals{config: path}).settings()
	if lines := strings.Split(err.Error(), "\n"); len(lines) != 3 || !strings.HasPrefix(lines[1], path+":4: ") || !strings.HasPrefix(lines[2], path+":6: ") {
		t.Errorf("not all errors, or not in order:\n%v", err)
	}
}

// sampleValues are values of TOML by the kinds of settings.
var sampleValues = map[string]string{
	"true or false": "true", "a number": "1", "a string": `"a"`, "a list of strings": `["1=a", "2=b"]`,
	`a string with a duration, as "90s" or "2m"`: `"90s"`, `a string with bytes, as "500M" or "4G"`: `"500M"`,
}

// TestEveryFlagIsASetting sets each flag of the commands that have a table by the file.
func TestEveryFlagIsASetting(t *testing.T) {
	for command, table := range flagTables {
		root := newRoot()
		cmd, _, err := root.Find([]string{command})
		if err != nil {
			t.Fatal(err)
		}
		count := 0
		tableFlags(table).VisitAll(func(f *pflag.Flag) {
			count++
			sample := sampleValues[settingKind(f).says]
			if f.Name == "color" {
				sample = `"never"`
			}
			path := writeConfig(t, "["+table+"]\n"+f.Name+" = "+sample+"\n")
			g := &globals{}
			root := newRootOf(g, nil)
			g.config = path
			cmd, _, _ := root.Find([]string{command})
			_ = cmd.InheritedFlags()
			if err := g.applySettings(cmd); err != nil {
				t.Errorf("%s: %s: %v", command, f.Name, err)
				return
			}
			own := cmd.Flags().Lookup(f.Name)
			if own == nil && command == "worker" {
				return
			}
			if !slices.Contains(g.applied, f.Name) || own.Value.String() == "" {
				t.Errorf("%s: the setting %s is not taken", command, f.Name)
			}
		})
		if count < 20 {
			t.Errorf("%s: %d settings", command, count)
		}
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if kind := f.Value.Type(); settingKind(f).says == "a string" && kind != "string" && tableFlags(table).Lookup(f.Name) != nil {
				t.Errorf("--%s of %s has values of the type %s, which valueKinds does not have", f.Name, command, kind)
			}
		})
	}
}

// flagValuesOf returns the values of flags of a command line with a configuration file.
func flagValuesOf(t *testing.T, config string, line ...string) (*globals, *pflag.FlagSet) {
	t.Helper()
	g := &globals{}
	root := newRootOf(g, nil)
	var flags *pflag.FlagSet
	for _, cmd := range root.Commands() {
		cmd.RunE = func(cmd *cobra.Command, _ []string) error {
			flags = cmd.Flags()
			return nil
		}
	}
	root.SetArgs(append(line, "--config", writeConfig(t, config)))
	if err := root.Execute(); err != nil {
		t.Fatalf("%v: %v", line, err)
	}
	return g, flags
}

// TestTablesOfTheFile: which table counts, for which commands, and that the command line counts more.
func TestTablesOfTheFile(t *testing.T) {
	const file = `
[stack]
top = 3
max-frames = 4
debug-dir = ["/stack"]
[profile]
event = ["a", "b"]
repeat = 7
[symbols]
debug-dir = ["/one", "/two"]
debuginfod = ["http://localhost:1"]
symbols = ["/store"]
[serve]
workers = 9
`
	for _, c := range []struct {
		line, flag, want string
	}{
		{"stack core", "top", "3"},
		{"stack core --top 5", "top", "5"},
		{"stack core --max-stack 6", "max-frames", "6"}, // by its other name
		{"stack core", "debug-dir", "[/stack]"},
		{"stack core --debug-dir /given", "debug-dir", "[/given]"},
		{"stack core", "debuginfod", "[http://localhost:1]"},
		{"stack core --symbols /given", "symbols", "/given"},
		{"snapshot core", "debug-dir", "[/one,/two]"},
		{"snapshot core", "symbols", "/store"},
		{"eval", "debuginfod", "[http://localhost:1]"},
		{"symbolize a", "debug-dir", "[/one,/two]"},
		{"symbols a", "debuginfod", "[http://localhost:1]"},
		{"submit a", "debug-dir", "[/one,/two]"},
		{"profile a", "event", "[a,b]"},
		{"profile a", "repeat", "7"},
		{"serve", "workers", "9"},
		{"serve", "debuginfod", "[]"}, // it is for others
		{"worker", "workers", "9"},
	} {
		_, flags := flagValuesOf(t, file, strings.Fields(c.line)...)
		if got := flags.Lookup(c.flag).Value.String(); got != c.want {
			t.Errorf("%s: --%s is %s, expected %s", c.line, c.flag, got, c.want)
		}
	}
}

// TestTheConfigurationFileIsFound: by UNWINDD_CONFIG, in the user's folder, and not at all.
func TestTheConfigurationFileIsFound(t *testing.T) {
	core := filepath.Join(crashDir, "server.core")
	home, named := t.TempDir(), writeConfig(t, "[stack]\ntop = 2\ncrashed = true\n")
	if err := os.MkdirAll(filepath.Join(home, "unwindd"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, "unwindd", "config.toml"), []byte("[stack]\ntop = 1\ncrashed = true\n"), 0o644); err != nil { //nolint:gosec // no secret
		t.Fatal(err)
	}
	for _, c := range []struct {
		variables []string
		flags     []string
		frames    string // the last line of the stack
	}{
		{[]string{"XDG_CONFIG_HOME=" + home}, nil, "... 10 frames left out"},
		{[]string{"XDG_CONFIG_HOME=" + home, "UNWINDD_CONFIG=" + named}, nil, "... 9 frames left out"},
		{[]string{"XDG_CONFIG_HOME=" + home, "UNWINDD_CONFIG="}, nil, "#4 0x000000000046306c clone3"},
		{[]string{"UNWINDD_CONFIG=" + named}, []string{"--config", ""}, "#4 0x000000000046306c clone3"},
		{[]string{"UNWINDD_CONFIG=/none"}, []string{"--config", named}, "... 9 frames left out"},
		{[]string{"XDG_CONFIG_HOME=" + t.TempDir()}, nil, ""},
	} {
		cmd := command(append([]string{"stack", core}, c.flags...)...)
		cmd.Env = slices.DeleteFunc(cmd.Env, func(text string) bool { return strings.HasPrefix(text, configVariable+"=") })
		cmd.Env = append(cmd.Env, c.variables...)
		out, err := cmd.Output()
		if err != nil || !strings.Contains(string(out), c.frames) {
			t.Errorf("%v %v: %v\n%s", c.variables, c.flags, err, out)
		}
	}
}

// TestAFileOfOthersIsNoConfiguration: settings name executables and servers.
func TestAFileOfOthersIsNoConfiguration(t *testing.T) {
	dir := t.TempDir()
	place := func(name string, change func(path string) error) string {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.WriteFile(path, []byte("[stack]\ntop = 1\n"), 0o600), change(path)); err != nil {
			t.Fatal(err)
		}
		return path
	}
	cases := []struct{ path, want string }{
		{place("group", func(path string) error { return os.Chmod(path, 0o660) }), "others may write to it (its mode is 0660; chmod go-w), so its settings are not taken"},
		{place("world", func(path string) error { return os.Chmod(path, 0o602) }), "others may write to it"},
		{place("pipe", func(path string) error { return errors.Join(os.Remove(path), oracle.Mkfifo(path)) }), "it is no regular file"},
		{place("large", func(path string) error { return os.Truncate(path, maxConfig+1) }), "it has 1048577 bytes, expected at most 1048576"},
		{dir, "it is no regular file"},
		{filepath.Join(dir, "none"), "no such file"},
	}
	if os.Geteuid() == 0 {
		cases = append(cases, struct{ path, want string }{
			place("stranger", func(path string) error { return os.Chown(path, 1234, 0) }), "its owner is user 1234, and neither root nor user 0",
		})
	}
	for _, c := range cases {
		g := &globals{config: c.path, isConfigFound: true}
		if _, err := g.settings(); err == nil || !strings.Contains(err.Error(), c.path) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, expected %s", err, c.want)
		}
	}
	// One that the command line names is the caller's choice.
	if s, err := (&globals{config: filepath.Join(dir, "group")}).settings(); err != nil || s.flags["stack"]["top"][0] != "1" {
		t.Errorf("%v", err)
	}
	// Processes of a server have the settings from it.
	t.Setenv(configVariable, filepath.Join(dir, "group"))
	if _, err := workerPlugins(nil, true); err != nil {
		t.Error(err)
	}
}

// TestErrorsNameTheFileOfAFlag: who did not type a flag is told where it comes from.
func TestErrorsNameTheFileOfAFlag(t *testing.T) {
	path := writeConfig(t, "[stack]\nformat = \"xml\"\n[symbols]\nsysroot = \"/none\"\n")
	core := filepath.Join(crashDir, "server.core")
	for _, c := range []struct {
		line []string
		says string
	}{
		{[]string{"stack", core}, path + " sets --format\n"},
		{[]string{"stack", core, "--format", "text"}, path + " sets --sysroot\n"},
		{[]string{"snapshot", core, "-o", "-"}, path + " sets --sysroot\n"},
	} {
		if _, stderr, status := unwindd(t, append(c.line, "--config", path)...); status == exitDone || !strings.Contains(stderr, c.says) {
			t.Errorf("%v: status %d, expected %q in\n%s", c.line, status, c.says, stderr)
		}
	}
	if _, stderr, _ := unwindd(t, "stack", core, "--config", path, "--format", "xml", "--sysroot", "/"); strings.Contains(stderr, "sets") {
		t.Errorf("the flag is on the command line:\n%s", stderr)
	}
}

// TestSettingsThatNeedOthers: a setting waits for the flag that it belongs to.
func TestSettingsThatNeedOthers(t *testing.T) {
	program := filepath.Join(crashDir, "server") // it is not started
	path := writeConfig(t, "[stack]\ndisassembler = \""+program+"\"\n[profile]\ndisassembler = \""+program+"\"\nobjects = [\"/none\"]\nformat = \"pprof\"\n")
	if _, stderr, status := unwindd(t, "stack", filepath.Join(crashDir, "server.core"), "--config", path); status != exitDone {
		t.Error(stderr)
	}
	g, flags := flagValuesOf(t, "[profile]\nformat = \"pprof\"\n", "profile", "perf.data", "--http", "localhost:0")
	if flags.Changed("format") || g.format != "pprof" {
		t.Error("a format of the file is taken for one of the command line")
	}
}
