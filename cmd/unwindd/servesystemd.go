// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// notify tells the service manager what this process does (sd_notify(3)). Nobody is told
// where nobody asked, and who does not listen misses it.
func notify(states ...string) {
	name := os.Getenv("NOTIFY_SOCKET")
	if name == "" {
		return
	}
	if states[0] == "RELOADING=1" {
		var now unix.Timespec
		if unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) == nil {
			states = append(states, fmt.Sprintf("MONOTONIC_USEC=%d", now.Nano()/1000))
		}
	}
	if name[0] == '@' { // an abstract one
		name = "\x00" + name[1:]
	}
	c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		return
	}
	defer c.Close()
	_, _ = c.Write([]byte(strings.Join(states, "\n")))
}

// firstOf is the first folder of a list that systemd has made for a service
// (systemd.exec(5), RuntimeDirectory=); "": it has made none.
func firstOf(variable string) string {
	first, _, _ := strings.Cut(os.Getenv(variable), ":")
	return first
}

// stateDir is where objects are kept that are put.
func (f *serveFlags) stateDir() string {
	return cmp.Or(absolutePath(f.state), firstOf("STATE_DIRECTORY"), xdg("XDG_STATE_HOME", ".local/state"))
}

// runDir is where workers have what they need while they run: what is unpacked among it,
// so that it is on a disk where systemd gives one.
func runDir() string {
	for _, dir := range []string{firstOf("CACHE_DIRECTORY"), firstOf("STATE_DIRECTORY")} {
		if dir != "" {
			return filepath.Join(dir, "run")
		}
	}
	return filepath.Join(runtimeDir(), "unwindd")
}

// socketPath is where it listens when nobody says where.
func socketPath() string {
	return filepath.Join(cmp.Or(firstOf("RUNTIME_DIRECTORY"), runtimeDir()), "unwindd.sock")
}

// keepCachesOfService has what is downloaded kept in the folder that systemd has made.
func keepCachesOfService() error {
	if dir := firstOf("CACHE_DIRECTORY"); dir != "" && os.Getenv("XDG_CACHE_HOME") == "" {
		return os.Setenv("XDG_CACHE_HOME", dir)
	}
	return nil
}
