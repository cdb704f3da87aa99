// SPDX-License-Identifier: Apache-2.0

package main

// merges TODO
func merges(*bench) ([]*contest, error) { return nil, nil }
