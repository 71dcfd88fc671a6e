// Package catalog is the action language.
package catalog
