// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/unwindd/unwindd/sdk"
)

// walks has the pairs of engines and plugins walk targets.
type walks struct {
	before, after *side
	dir           string
}

// arguments are the arguments of each walk, by what a target is: those that have plugins answer
// all that they can.
var arguments = map[bool][]string{
	false: {"stack", "--format", "json", "--locals", "--code", "2"},
	true:  {"profile", "--format", "json"},
}

// command is a run of an engine with plugins. The cache of descriptions is the same for all:
// engines of both ages read in it what the other wrote.
func (w *walks) command(engine, plugins *side, args ...string) *exec.Cmd {
	setting, _ := json.Marshal(plugins.attached) //nolint:errchkjson // raw messages that were parsed
	cmd := exec.Command(engine.unwindd(), append(args, "--plugin-dir", plugins.plugins())...)
	cmd.Dir = w.dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + w.dir, "XDG_CACHE_HOME=" + filepath.Join(w.dir, "cache"), "XDG_CONFIG_HOME=" + filepath.Join(w.dir, "config"),
		sdk.Reattach + "=" + string(setting),
	}
	return cmd
}

// checkPairs makes sure that the engines use the plugins that they are to use.
func (w *walks) checkPairs() error {
	for _, engine := range []*side{w.before, w.after} {
		for _, plugins := range []*side{w.before, w.after} {
			if err := w.checkPair(engine, plugins); err != nil {
				return fmt.Errorf("engine of %s, plugins of %s: %w", engine.name, plugins.name, err)
			}
		}
	}
	return nil
}

func (w *walks) checkPair(engine, plugins *side) error {
	var problems bytes.Buffer
	cmd := w.command(engine, plugins, "plugin", "list", "--format", "json")
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("%w: %s", err, problems.Bytes())
	}
	var list []struct{ Name, Origin, Problem string }
	if err := json.Unmarshal(out, &list); err != nil {
		return err
	}
	found := map[string]string{}
	for _, p := range list {
		if p.Problem != "" {
			return fmt.Errorf("plugin %s: %s", p.Name, p.Problem)
		}
		found[p.Name] = p.Origin
	}
	for i, name := range bundled {
		if want := fmt.Sprintf("process %d", plugins.running[i].Process.Pid); found[name] != want {
			return fmt.Errorf("plugin %s is %q, expected %q", name, found[name], want)
		}
	}
	for _, name := range []string{"riscv64", "toy"} {
		if want := filepath.Join(plugins.plugins(), sdk.ExecutablePrefix+name); found[name] != want {
			return fmt.Errorf("plugin %s is %q, expected %q", name, found[name], want)
		}
	}
	return nil
}

// walk is the JSON of a target's stacks, with the exit status.
func (w *walks) walk(engine, plugins *side, t target) (string, error) {
	cmd := w.command(engine, plugins, append(arguments[t.isRecording()], t.path)...)
	out, err := cmd.Output()
	var status *exec.ExitError
	if err != nil && !errors.As(err, &status) {
		return "", err
	}
	return fmt.Sprintf("%s\nexit status %d\n", out, cmd.ProcessState.ExitCode()), nil
}

// compare walks targets, and prints what differs.
func (w *walks) compare(targets []target) error {
	var total counts
	for _, t := range targets {
		n, err := w.compareTarget(t)
		if err != nil {
			return err
		}
		total.byPlugins += n.byPlugins
		total.byEngine += n.byEngine
		total.byRun += n.byRun
		total.size += n.size
	}
	fmt.Printf("%d targets by 4 pairs, %d bytes of JSON: %d differ by the plugins of an engine, %d by the engine that has the old plugins, %d from one run to the next\n",
		len(targets), total.size, total.byPlugins, total.byEngine, total.byRun)
	if total.byPlugins > 0 {
		return fmt.Errorf("%d outputs differ, expected the same with plugins of either age", total.byPlugins)
	}
	return nil
}

// counts are the outputs that differ, by why they do.
type counts struct {
	byPlugins, byEngine, byRun int
	size                       int // of all outputs, in bytes
}

// compareTarget walks a target by all pairs.
func (w *walks) compareTarget(t target) (n counts, err error) {
	sides := []*side{w.before, w.after}
	var out [2][2]string // by engine and by plugins
	for i, engine := range sides {
		for j, plugins := range sides {
			if out[i][j], err = w.walk(engine, plugins, t); err != nil {
				return n, err
			}
			n.size += len(out[i][j])
		}
	}
	for i, engine := range sides {
		if out[i][0] == out[i][1] {
			continue
		}
		varies, err := w.varies(engine, t, out[i])
		if err != nil {
			return n, err
		}
		if varies {
			n.byRun++
			continue
		}
		n.byPlugins++
		fmt.Printf("%s: the engine of %s gives other stacks with the plugins of %s and of %s:\n%s", t.name, engine.name, w.before.name, w.after.name, firstDifference(out[i][0], out[i][1]))
		w.save(t, engine, out[i])
	}
	if out[0][0] != out[1][0] && n.byRun == 0 {
		n.byEngine++
		fmt.Printf("%s: with the plugins of %s the engines differ, which is no failure:\n%s", t.name, w.before.name, firstDifference(out[0][0], out[1][0]))
	}
	return n, nil
}

// varies reports whether an engine gives an output with old plugins that it gives with new ones,
// too, when it is run again: its threads are walked at the same time.
func (w *walks) varies(engine *side, t target, out [2]string) (bool, error) {
	const runs = 10
	seen := [2]map[string]bool{{out[0]: true}, {out[1]: true}}
	for range runs {
		for i, plugins := range []*side{w.before, w.after} {
			text, err := w.walk(engine, plugins, t)
			if err != nil {
				return false, err
			}
			seen[i][text] = true
			if seen[1-i][text] {
				fmt.Printf("%s: the engine of %s differs from one run to the next, with either plugins\n", t.name, engine.name)
				return true, nil
			}
		}
	}
	return false, nil
}

// firstDifference shows the first line that differs.
func firstDifference(a, b string) string {
	before, after := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range max(len(before), len(after)) {
		line := func(l []string) string {
			if i >= len(l) {
				return "(it ends)"
			}
			return l[i][:min(len(l[i]), 200)]
		}
		if line(before) != line(after) || i < len(before) && i < len(after) && before[i] != after[i] {
			return fmt.Sprintf("  line %d\n  - %s\n  + %s\n", i+1, line(before), line(after))
		}
	}
	return ""
}

// save keeps the outputs that differ, where a folder is kept.
func (w *walks) save(t target, engine *side, out [2]string) {
	if *keep == "" {
		return
	}
	name := strings.NewReplacer("/", "-", " ", "-").Replace(t.name + "-engine-" + engine.name)
	for i, text := range out {
		_ = os.WriteFile(filepath.Join(w.dir, fmt.Sprintf("%s.%d.json", name, i)), []byte(text), 0o600)
	}
}
