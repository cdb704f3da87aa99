// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/unwindd/unwindd/.ci/peers/cost"
	"github.com/unwindd/unwindd/.ci/peers/templates"
)

// generated is a large C++ program, built once.
func generated() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "unwindd-peers", fmt.Sprintf("symbols-%x", templates.Sum()))
	program := filepath.Join(dir, "program")
	if _, err := os.Stat(program); err == nil {
		return program, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	objects, err := templates.Compile(dir, "-O2", "-g")
	if err != nil {
		return "", err
	}
	main := append(templates.Calls(), "int main(int, char **v) { return int(all(v[0])); }\n"...)
	if err := os.WriteFile(filepath.Join(dir, "main.cc"), main, 0o600); err != nil {
		return "", err
	}
	if err := cost.Run(dir, "g++", append(objects, "-o", program+".new", "main.cc")...); err != nil {
		return "", err
	}
	return program, os.Rename(program+".new", program)
}
