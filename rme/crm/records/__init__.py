"""Import and export of the embedded records as CSV files: `import_file`, `export`, `files`."""
