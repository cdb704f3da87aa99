// SPDX-License-Identifier: Apache-2.0

package main

// locals TODO
func locals(*bench) ([]*contest, error) { return nil, nil }

// waveLocals TODO
func waveLocals(*bench) ([]*contest, error) { return nil, nil }
