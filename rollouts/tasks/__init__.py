"""More tasks for an environment: drawn from templates, rewritten, proposed; proven by execution, and thinned out."""
