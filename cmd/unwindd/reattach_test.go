// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/sdk"
)

// TestCommandsUseAReattachedPlugin: commands say with a plugin that somebody else started
// what they say with their own, and warn of it. The plugin outlives them.
func TestCommandsUseAReattachedPlugin(t *testing.T) {
	debugged := command("plugin", "serve", "x86_64")
	debugged.Env = append(debugged.Env, sdk.Debug+"=1")
	out, err := debugged.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := debugged.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = debugged.Process.Signal(os.Interrupt)
		if err := debugged.Wait(); err != nil {
			t.Errorf("the plugin: %v", err)
		}
	}()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	setting := strings.ReplaceAll(strings.TrimSpace(line), "'", "")
	const server = "../../examples/crash/server"
	process := fmt.Sprintf("process %d", debugged.Process.Pid)
	for _, args := range []string{
		"stack " + server + ".core", "plugin info x86_64", "plugin call FrameRules " + server + " main",
		"plugin call Describe --arch x86_64", "plugin call Describe --arch ./unwindd-arch-x86_64",
	} {
		reattached := command(strings.Fields(args)...)
		reattached.Env = append(reattached.Env, setting)
		var errs bytes.Buffer
		reattached.Stderr = &errs
		got, err := reattached.Output()
		want, _, _ := ran(t, strings.Fields(strings.Replace(args, "./unwindd-arch-", "", 1))...)
		want = strings.Replace(want, "bundled", process, 1) // of info
		if err != nil || string(got) != want || want == "" {
			t.Errorf("%s: %v\n%s\nexpected\n%s", args, err, got, want)
		}
		warning := "unwindd: warning: plugin x86_64 is " + process + ", as UNWINDD_REATTACH_PLUGINS says: it is not confined, and may take as long as it likes\n"
		if errs.String() != warning {
			t.Errorf("%s: %q, expected %q", args, errs.String(), warning)
		}
	}
}

func TestReattachIsNotAlwaysUsed(t *testing.T) {
	for _, c := range []struct {
		args   string
		want   string // what is printed to standard error
		status int
	}{
		{"plugin list", `expected {"NAME":{"Protocol":"grpc","ProtocolVersion":2,`, exitInput},
		{"plugin verify /bin/true", "UNWINDD_REATTACH_PLUGINS is not used: 'plugin verify' starts the executable itself", exitInput},
		{"symbolize --obj ../../examples/crash/server 0x1257", "", exitDone}, // it asks no architecture
	} {
		cmd := command(strings.Fields(c.args)...)
		cmd.Env = append(cmd.Env, sdk.Reattach+"={")
		var errs bytes.Buffer
		cmd.Stderr = &errs
		_ = cmd.Run()
		if status := cmd.ProcessState.ExitCode(); status != c.status || !strings.Contains(errs.String(), c.want) || (c.want == "" && errs.Len() > 0) {
			t.Errorf("%s: status %d, %s, expected %d and %q", c.args, status, errs.String(), c.status, c.want)
		}
	}
}
