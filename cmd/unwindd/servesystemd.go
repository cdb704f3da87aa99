// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/unwindd/unwindd/internal/host"
)

// notify sends states of this process to the service manager, if it asked for them
// (sd_notify(3)). Errors are ignored.
func notify(states ...string) {
	name := os.Getenv("NOTIFY_SOCKET")
	if name == "" {
		return
	}
	if states[0] == "RELOADING=1" {
		if now := host.Uptime(); now > 0 {
			states = append(states, fmt.Sprintf("MONOTONIC_USEC=%d", now.Microseconds()))
		}
	}
	if name[0] == '@' { // an abstract socket
		name = "\x00" + name[1:]
	}
	c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		return
	}
	defer c.Close()
	_, _ = c.Write([]byte(strings.Join(states, "\n")))
}

// firstOf returns the first of the folders that systemd has made for a service
// (systemd.exec(5), RuntimeDirectory=); "": it has made none.
func firstOf(variable string) string {
	first, _, _ := strings.Cut(os.Getenv(variable), ":")
	return first
}

// stateDir returns the folder of stored objects and reports.
func (f *serveFlags) stateDir() string {
	return cmp.Or(absolutePath(f.state), firstOf("STATE_DIRECTORY"), xdg("XDG_STATE_HOME", ".local/state"))
}

// runDir returns the folder of running workers, which has the sockets of their plugins.
func runDir() string {
	for _, dir := range []string{firstOf("CACHE_DIRECTORY"), firstOf("STATE_DIRECTORY")} {
		if dir != "" {
			return filepath.Join(dir, "run")
		}
	}
	return filepath.Join(runtimeDir(), "unwindd")
}

// socketPath returns the default socket of the server.
func socketPath() string {
	return filepath.Join(cmp.Or(firstOf("RUNTIME_DIRECTORY"), runtimeDir()), "unwindd.sock")
}

// keepCachesOfService makes the cache folder of systemd the one for downloads.
func keepCachesOfService() error {
	if dir := firstOf("CACHE_DIRECTORY"); dir != "" && os.Getenv("XDG_CACHE_HOME") == "" {
		return os.Setenv("XDG_CACHE_HOME", dir)
	}
	return nil
}
