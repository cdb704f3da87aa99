// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// protos are the protocols that are promised.
var protos = []string{"sdk/archpb/arch.proto", "engine/service/servicepb/unwindd.proto"}

// rules configure buf: FILE is about generated code, WIRE_JSON about both encodings.
const rules = "version: v2\nbreaking:\n  use: [FILE, WIRE_JSON]\n"

// protocols are the changes of protocols that break who was made for the release.
func (c *check) protocols(r *release) ([]broken, error) {
	dir, err := os.MkdirTemp("", "unwindd-protocols-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	before := func(path string) string { return c.released(filepath.Base(path)) }
	if r.tree != "" {
		before = func(path string) string { return filepath.Join(r.tree, path) }
	}
	if err := gather(filepath.Join(dir, "before"), before); err != nil {
		return nil, err
	}
	if err := gather(filepath.Join(dir, "after"), func(path string) string { return filepath.Join(c.top, path) }); err != nil {
		return nil, err
	}
	cmd := exec.Command(c.buf, "breaking", ".", "--against", "../before", "--error-format", "json")
	cmd.Dir = filepath.Join(dir, "after")
	cmd.Env = append(os.Environ(), "BUF_CACHE_DIR="+filepath.Join(dir, "cache"))
	var problems bytes.Buffer
	cmd.Stderr = &problems
	out, err := cmd.Output()
	const breaks = 100 // the exit status of buf where a rule is broken
	var status *exec.ExitError
	switch {
	case err == nil:
		return nil, nil
	case !errors.As(err, &status):
		return nil, fmt.Errorf("%w: expected buf 1.75.0, as .ci/buf installs it", err)
	case status.ExitCode() != breaks:
		return nil, fmt.Errorf("buf breaking: %w: %s", err, problems.Bytes())
	}
	return parsed(out)
}

// gather copies the protocols into a new folder, with the rules beside them.
func gather(dir string, path func(proto string) string) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	for _, p := range protos {
		text, err := os.ReadFile(path(p))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(p)), text, 0o600); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(dir, "buf.yaml"), []byte(rules), 0o600)
}

// parsed reads what buf prints: an object on each line.
func parsed(out []byte) ([]broken, error) {
	var found []broken
	for s := bufio.NewScanner(bytes.NewReader(out)); s.Scan(); {
		var m struct {
			Path      string `json:"path"`
			StartLine int    `json:"start_line"`
			Type      string `json:"type"`
			Message   string `json:"message"`
		}
		if err := json.Unmarshal(s.Bytes(), &m); err != nil {
			return nil, fmt.Errorf("buf prints %q: %w", s.Bytes(), err)
		}
		found = append(found, broken{"", fmt.Sprintf("%s:%d: %s (%s)", m.Path, m.StartLine, m.Message, m.Type)})
	}
	if len(found) == 0 {
		return nil, errors.New("buf says that something breaks, and not where")
	}
	return found, nil
}
