// SPDX-License-Identifier: Apache-2.0

package main

import (
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

//go:embed sampled/walk.php
var walk string

// calls are the lines of a program: in which function they are, and what they may call.
type calls struct {
	lines    map[string]line // by number
	builtins map[string][]string
}

type line struct {
	function string
	callees  []string
}

// callsOf reads what the lines of a program say.
func callsOf(program string) calls {
	c := calls{map[string]line{}, map[string][]string{}}
	n := 0
	for text := range strings.Lines(program) {
		n++
		_, comment, has := strings.Cut(strings.TrimSuffix(text, "\n"), "// ")
		i := strings.LastIndex(comment+" ", ": ")
		if !has || i < 0 {
			continue
		}
		callees := strings.Fields(comment[min(i+1, len(comment)):])
		if name, is := strings.CutPrefix(comment[:i], "builtin "); is {
			c.builtins[name] = callees
			continue
		}
		c.lines[strconv.Itoa(n)] = line{comment[:i], callees}
	}
	return c
}

// check returns why a stack cannot have been. A closure's name has its place from
// PHP 8.4 on.
func (c *calls) check(stack []frame) error {
	if len(stack) == 0 {
		return fmt.Errorf("it has no frames")
	}
	inner := ""
	for i, f := range stack {
		name := f.Function
		if before, _, is := strings.Cut(name, "{closure:"); is {
			name = before + "{closure}"
		}
		callees, isBuiltin := c.builtins[name]
		if !isBuiltin {
			l, has := c.lines[f.Line]
			if i == 0 && f.Line == "0" { // the interpreter had not written it yet
				inner = name
				continue
			}
			if !has || l.function != name {
				return fmt.Errorf("frame %d: %v: no such line", i, f)
			}
			callees = l.callees
		}
		if inner != "" && !slices.Contains(callees, inner) {
			return fmt.Errorf("frame %d: %v does not call %s", i, f, inner)
		}
		inner = name
	}
	if inner != "{main}" {
		return fmt.Errorf("the outermost frame is %s", inner)
	}
	return nil
}

// sample takes the stacks of a program that executes.
func (c *comparison) sample(b *build, m mode, count int) error {
	name := filepath.Join(c.dir, "walk.php")
	if err := os.WriteFile(name, []byte(walk), 0o644); err != nil {
		return err
	}
	args := slices.Concat(b.command, m.flags, []string{name})
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir, cmd.Env, cmd.Stderr = c.dir, b.env, os.Stderr
	if err := cmd.Start(); err != nil {
		return err
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	time.Sleep(500 * time.Millisecond)
	n := c.of(strings.TrimSpace(b.version+" "+b.name+" "+m.name) + "\tsampled")
	may := callsOf(walk)
	for range count {
		stack, problems, err := c.frames(strconv.Itoa(cmd.Process.Pid))
		n.programs++
		n.frames += len(stack)
		switch wrong := may.check(stack); {
		case err != nil || len(stack) == 0:
			n.missing++
		case wrong == nil && len(problems) == 0:
			n.equal++
			continue
		default:
			n.differ++
			err = wrong
		}
		if c.verbose {
			fmt.Printf("%s %s, sampled: %v %s\n", b.version, b.name, err, strings.Join(problems, "; "))
		}
	}
	return nil
}
