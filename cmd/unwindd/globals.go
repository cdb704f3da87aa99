// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/internal/bundled"
	"github.com/unwindd/unwindd/internal/host"
	"github.com/unwindd/unwindd/sdk"
)

// globals are the flags that every command has.
type globals struct {
	format    string
	output    string
	color     colorWhen
	verbose   bool
	logs      bool // verbose twice
	pluginLog string
	pluginDir []string
	config    string
	inProcess bool
	server    string // the address of a server that walks; "": this process walks

	inputs        []string  // files that are read
	isConfigFound bool      // the command line does not name the configuration file
	isNoConfig    bool      // the command line says that there is none
	file          *settings // of the configuration file, when it was read
	applied       []string  // names of flags that it sets
}

// verbosity is the flag --verbose, which may be set twice.
type verbosity struct{ g *globals }

func (v *verbosity) String() string { return strconv.FormatBool(v.g != nil && v.g.verbose) }
func (v *verbosity) Type() string   { return "bool" }

func (v *verbosity) Set(s string) error {
	isOn, err := strconv.ParseBool(s)
	if err != nil {
		return err
	}
	v.g.logs, v.g.verbose = isOn && v.g.verbose, isOn
	return nil
}

func (g *globals) addFlags(f *pflag.FlagSet) {
	f.StringVar(&g.format, "format", "text", "print as `FORMAT`: text or json")
	f.StringVarP(&g.output, "output", "o", "", "write to `FILE` instead of standard output; - is standard output")
	g.color = "auto"
	f.Var(&g.color, "color", "colour text: `WHEN` auto, which is on terminals unless $NO_COLOR is set, always or never")
	f.VarPF(&verbosity{g}, "verbose", "v", "say more: what was looked for and where; given twice: also what plugins log").NoOptDefVal = "true"
	f.StringArrayVar(&g.pluginDir, "plugin-dir", nil, "look for unwindd-arch-NAME executables in `DIR` (also $UNWINDD_PLUGIN_DIR); may be repeated")
	f.StringVar(&g.pluginLog, "plugin-log", "", "show what plugins write to standard error from `LEVEL` on: trace, debug, info, warn or error; lines without a level are debug")
	f.StringVar(&g.config, "config", "", "read settings from the TOML `FILE` (default $UNWINDD_CONFIG, else unwindd/config.toml in $XDG_CONFIG_HOME, ~/.config or /etc); '' reads none")
	f.StringVar(&g.server, "server", "", "have the server at `ADDR`, unix:PATH, HOST:PORT or https://HOST:PORT, do the work; targets stay here, and it gets what it needs of them (also $UNWINDD_SERVER); '' is none")
	f.BoolVar(&g.inProcess, "in-process", !plugin.HasProcesses, "run the bundled architectures without child processes")
	forCommandLine(f, "config", "output")
}

// checkFormat refuses a --format that the command does not have.
func (g *globals) checkFormat(formats ...string) error {
	for _, f := range formats {
		if g.format == f {
			return nil
		}
	}
	return usageError{fmt.Errorf("--format %s: expected %s", g.format, strings.Join(formats, " or "))}
}

// writer is the output of a command.
type writer struct {
	io.Writer
	isColored bool // text has colours
	file      *outputFile
}

// colors reports whether text that is written to a file has colours. --color decides before
// NO_COLOR does, which is set and not empty for who wants none (no-color.org).
func (g *globals) colors(f *os.File) bool {
	switch g.color {
	case "always":
		return true
	case "never":
		return false
	}
	return os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && term.IsTerminal(int(f.Fd()))
}

// colorWhen is the value of --color.
type colorWhen string

var colorValues = []string{"auto", "always", "never"}

func (c *colorWhen) String() string { return string(*c) }
func (c *colorWhen) Type() string   { return "WHEN" }

func (c *colorWhen) Set(text string) error {
	if !slices.Contains(colorValues, text) {
		return errors.New("expected auto, always or never")
	}
	*c = colorWhen(text)
	return nil
}

// open begins the output, or another output file.
func (g *globals) open(path string) (*writer, error) {
	if path == "" {
		path = stdoutName
	}
	if err := g.notOverInput(path); err != nil {
		return nil, err
	}
	f, err := createOutput(path, false)
	if err != nil {
		return nil, err
	}
	if f.File == os.Stdout {
		return &writer{stdout, g.colors(os.Stdout), f}, nil
	}
	return &writer{f, g.color == "always", f}, nil
}

// write begins the output, has f write it, and finishes it. Where f fails, or a file that
// it read was truncated, an existing file stays as it was.
func (g *globals) write(f func(*writer) error) error {
	w, err := g.open(g.output)
	if err != nil {
		return err
	}
	defer func() { _ = w.file.abandon() }() // for a panic
	return w.file.finish(engine.Guard(func() error { return f(w) }))
}

// plugins returns the options for plugins, and warns of processes that were started by
// others.
func (g *globals) plugins() (plugin.Options, error) {
	o, err := g.ownPlugins()
	value := os.Getenv(sdk.Reattach)
	if err != nil || value == "" {
		return o, err
	}
	if o.Attached, err = plugin.ParseReattach(value); err != nil {
		return plugin.Options{}, err
	}
	for _, name := range slices.Sorted(maps.Keys(o.Attached)) {
		messages.Printf("unwindd: warning: plugin %s is process %d, as %s says: it is not confined, and may take as long as it likes\n",
			name, o.Attached[name].Pid, sdk.Reattach)
	}
	return o, nil
}

// pluginDirs returns the plugin directories.
func (g *globals) pluginDirs(s *settings) []string {
	dirs := append(append([]string(nil), g.pluginDir...), s.Plugins.Dirs...)
	if env := os.Getenv("UNWINDD_PLUGIN_DIR"); env != "" {
		dirs = append(dirs, filepath.SplitList(env)...)
	}
	return dirs
}

// ownPlugins returns the options for plugins whose processes unwindd starts.
func (g *globals) ownPlugins() (plugin.Options, error) {
	s, err := g.settings()
	if err != nil {
		return plugin.Options{}, err
	}
	level := hclog.Off
	switch {
	case g.pluginLog != "":
		if level = hclog.LevelFromString(g.pluginLog); level == hclog.NoLevel {
			return plugin.Options{}, usageError{fmt.Errorf("--plugin-log %s: expected trace, debug, info, warn or error", g.pluginLog)}
		}
	case g.logs:
		level = hclog.Trace
	case g.verbose:
		level = hclog.Info
	}
	o := plugin.Options{
		Dirs:    g.pluginDirs(s),
		Pins:    s.Plugins.Pins,
		Choice:  plugin.Choice{Disabled: s.Plugins.Disabled, Replace: s.Plugins.Replace, PinnedOnly: s.Plugins.PinnedOnly},
		Waiting: func(text string) { messages.Printf("unwindd: %s\n", text) },
		Logger:  hclog.New(&hclog.LoggerOptions{Name: "unwindd", Level: level, Output: messageWriter{}}),
	}
	if o.Self, o.Build, err = pluginStarter(); err != nil {
		return plugin.Options{}, fmt.Errorf("finding this executable, to start plugins with: %w", err)
	}
	if !g.inProcess {
		o.Bundled, o.BundledRuntimes = bundled.Architectures, bundled.Runtimes
		return o, nil
	}
	for _, b := range bundled.Architectures {
		o.InProcess = append(o.InProcess, b.New())
	}
	for _, b := range bundled.Runtimes {
		o.InProcessRuntimes = append(o.InProcessRuntimes, b.New())
	}
	return o, nil
}

// log returns a function that prints searches for files with --verbose; else nil.
func (g *globals) log() func(text string) {
	if !g.verbose {
		return nil
	}
	return func(text string) { messages.Printf("unwindd: %s\n", text) }
}

// disassembler returns the disassembler of a flag, or of the settings where the flag names
// none.
func (g *globals) disassembler(flag string) (string, error) {
	if flag != "" {
		return flag, nil
	}
	s, err := g.settings()
	if err != nil {
		return "", err
	}
	return s.Disassembler, nil
}

// fileFlags are the flags that locate the files of a target on this machine.
type fileFlags struct {
	exe       string
	sysroot   string
	debugDirs []string
	// buildIDDirs are caches of perf besides the user's.
	buildIDDirs []string
	modules     []string
}

func (f *fileFlags) add(flags *pflag.FlagSet) {
	f.addNamed(flags)
	f.addPlaces(flags)
}

// addNamed adds the flags that name files of one target.
func (f *fileFlags) addNamed(flags *pflag.FlagSet) {
	flags.StringVar(&f.exe, "exe", "", "the target's main executable is `FILE`")
	flags.StringArrayVar(&f.modules, "module", nil, "the target's module of a path or name is a file: `NAME=FILE`; may be repeated")
}

// addPlaces adds the flags of folders in which files of any target are.
func (f *fileFlags) addPlaces(flags *pflag.FlagSet) {
	flags.StringVar(&f.sysroot, "sysroot", host.Root, "look up the target's files under `DIR`")
	flags.StringArrayVar(&f.debugDirs, "debug-dir", nil, "look for separate debug files, and for code, under `DIR`; may be repeated")
	flags.StringArrayVar(&f.buildIDDirs, "buildid-dir", nil, "look for files by build ID in perf's cache at `DIR`, besides the user's (~/.debug); may be repeated")
}

// targetFlags are the flags that locate the files of a target.
type targetFlags struct {
	fileFlags
	debuginfodFlags
	symbolFlags
}

func (f *targetFlags) add(flags *pflag.FlagSet) {
	f.addNamed(flags)
	f.addPlaces(flags)
}

// addPlaces adds the flags that say where files of any target are: the settings of the table
// symbols.
func (f *targetFlags) addPlaces(flags *pflag.FlagSet) {
	f.fileFlags.addPlaces(flags)
	f.debuginfodFlags.add(flags)
	f.symbolFlags.add(flags)
}

// newEngine makes an engine with options, the plugins of g, and the flags' ways of finding
// files. end closes it.
func (f *targetFlags) newEngine(g *globals, o engine.Options) (e *engine.Engine, end func(), err error) {
	others := o.Plugins.Elsewhere
	if o.Plugins, err = g.plugins(); err != nil {
		return nil, nil, err
	}
	o.Plugins.Elsewhere = others
	o.Sysroot, o.Exe, o.DebugDirs, o.Downloads = f.sysroot, f.exe, f.debugDirs, f.downloads(g.log())
	o.BuildIDDirs, o.Drives = f.caches(), f.drives()
	f.symbolFlags.addTo(&o.Downloads)
	if o.Modules, err = f.modulesByName(); err != nil {
		return nil, nil, err
	}
	if e, err = engine.New(o); err != nil {
		return nil, nil, serverUsage(g.ofSetting(err), f.origin())
	}
	return e, func() { _ = e.Close() }, nil
}

// coreFlags are the flags for files beside a core.
type coreFlags struct{ gpuCore string }

func (f *coreFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.gpuCore, "gpu-core", "", "the state of the process's graphics processors is in `FILE`; the default is the one beside the core")
}
